// What an application does with Azure's library for tables in Go, against any table storage.
//
// main CONNECTION-STRING [throttle]; a line for each check, `go: N passed, N failed, N known` at the end. TABLES_KNOWN names a file of
// checks that the other side is known to fail, SSL_CERT_FILE a PEM file to trust.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const (
	devAccount    = "devstoreaccount1"
	devKey        = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	devConnection = "DefaultEndpointsProtocol=http;AccountName=" + devAccount + ";AccountKey=" + devKey +
		";TableEndpoint=http://127.0.0.1:10002/" + devAccount
)

var (
	ctx        = context.Background()
	connection string
	account    string
	key        string
	endpoint   string
	service    *aztables.ServiceClient
	throttled  bool
	busy       atomic.Int64
)

// Counts the answers that ask the library to wait.
type counting struct{}

func (counting) Do(request *policy.Request) (*http.Response, error) {
	answer, err := request.Next()
	if err == nil && answer.StatusCode == http.StatusServiceUnavailable {
		busy.Add(1)
	}
	return answer, err
}

// failure ends a check.
type failure struct{ text string }

func fail(format string, values ...any) { panic(failure{fmt.Sprintf(format, values...)}) }

func must(err error) {
	if err != nil {
		fail("%s", strings.Join(strings.Fields(err.Error()), " "))
	}
}

func got[T any](value T, err error) T {
	must(err)
	return value
}

func same(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		fail("expected %#v, got %#v", expected, found)
	}
}

func refused(err error, status int, code string) *azcore.ResponseError {
	if err == nil {
		fail("expected %d %s, and it was done", status, code)
	}
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		fail("expected %d %s, got %s", status, code, err)
	}
	if answer.StatusCode != status || answer.ErrorCode != code {
		fail("expected %d %s, got %d %s", status, code, answer.StatusCode, answer.ErrorCode)
	}
	return answer
}

func name() string {
	bytes := make([]byte, 6)
	_, _ = rand.Read(bytes)
	return "go" + hex.EncodeToString(bytes)
}

func table() *aztables.Client {
	made := service.NewClient(name())
	got(made.CreateTable(ctx, nil))
	return made
}

func tableName(client *aztables.Client) string {
	// The library does not tell the name of a client's table; that of its SAS does.
	url := got(client.GetTableSASURL(aztables.SASPermissions{Read: true}, time.Now(), time.Now().Add(time.Hour)))
	_, query, _ := strings.Cut(url, "?")
	for _, one := range strings.Split(query, "&") {
		if found, is := strings.CutPrefix(one, "tn="); is {
			return found
		}
	}
	fail("no name of a table in %s", url)
	return ""
}

type properties = map[string]any

func entity(row string, more properties) []byte { return entityOf("p", row, more) }

func entityOf(partition, row string, more properties) []byte {
	return got(json.Marshal(aztables.EDMEntity{
		Entity:     aztables.Entity{PartitionKey: partition, RowKey: row},
		Properties: more,
	}))
}

func parsed(value []byte) (found aztables.EDMEntity) {
	must(json.Unmarshal(value, &found))
	return found
}

func read(client *aztables.Client, partition, row string) aztables.EDMEntity {
	return parsed(got(client.GetEntity(ctx, partition, row, nil)).Value)
}

func rows(client *aztables.Client, filter string) []string {
	found, err := list(client, filter)
	must(err)
	return found
}

func list(client *aztables.Client, filter string) ([]string, error) {
	options := &aztables.ListEntitiesOptions{}
	if filter != "" {
		options.Filter = &filter
	}
	found := []string{}
	for pager := client.NewListEntitiesPager(options); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, one := range page.Entities {
			found = append(found, parsed(one).RowKey)
		}
	}
	return found, nil
}

func fill(client *aztables.Client, count int) {
	for first := 0; first < count; first += 100 {
		batch := []aztables.TransactionAction{}
		for n := first; n < min(count, first+100); n++ {
			batch = append(batch, action(aztables.TransactionTypeAdd, entity(fmt.Sprintf("%05d", n), properties{"n": int32(n)})))
		}
		got(client.SubmitTransaction(ctx, batch, nil))
	}
}

func action(kind aztables.TransactionType, entity []byte) aztables.TransactionAction {
	return aztables.TransactionAction{ActionType: kind, Entity: entity}
}

func submit(client *aztables.Client, actions ...aztables.TransactionAction) error {
	_, err := client.SubmitTransaction(ctx, actions, nil)
	return err
}

func merge(client *aztables.Client, entity []byte, mode aztables.UpdateMode, tag *azcore.ETag) (aztables.UpdateEntityResponse, error) {
	return client.UpdateEntity(ctx, entity, &aztables.UpdateEntityOptions{IfMatch: tag, UpdateMode: mode})
}

func put(client *aztables.Client, entity []byte, mode aztables.UpdateMode) {
	got(client.UpsertEntity(ctx, entity, &aztables.UpsertEntityOptions{UpdateMode: mode}))
}

func bySAS(client *aztables.Client, query string) *aztables.Client {
	return got(aztables.NewClientWithNoCredential(endpoint+"/"+tableName(client)+"?"+query, nil))
}

func sas(client *aztables.Client, values aztables.SASSignatureValues) string {
	values.TableName = tableName(client)
	return got(values.Sign(got(aztables.NewSharedKeyCredential(account, key))))
}

func in(hours int) time.Time { return time.Now().UTC().Add(time.Duration(hours) * time.Hour) }

type check struct {
	name string
	run  func()
}

var checks = []check{
	{"tables_are_created_listed_and_deleted", func() {
		prefix := name()
		names := []string{prefix + "a", prefix + "b", prefix + "c"}
		for _, one := range names {
			same(*got(service.CreateTable(ctx, one, nil)).TableName, one)
		}
		_, err := service.CreateTable(ctx, names[0], nil)
		refused(err, 409, "TableAlreadyExists")
		filter := fmt.Sprintf("TableName ge '%s' and TableName lt '%s~'", prefix, prefix)
		found := []string{}
		for pager := service.NewListTablesPager(&aztables.ListTablesOptions{Filter: &filter, Top: to.Ptr[int32](2)}); pager.More(); {
			for _, one := range got(pager.NextPage(ctx)).Tables {
				found = append(found, *one.Name)
			}
		}
		slices.Sort(found)
		same(found, names)
		for _, one := range names {
			got(service.DeleteTable(ctx, one, nil))
		}
		_, err = service.DeleteTable(ctx, names[0], nil)
		refused(err, 404, "ResourceNotFound")
	}},
	{"bad_table_names_are_refused", func() {
		_, err := service.CreateTable(ctx, "1abc", nil)
		refused(err, 400, "InvalidResourceName")
		_, err = service.CreateTable(ctx, "ab", nil)
		refused(err, 400, "OutOfRangeInput")
	}},
	{"a_missing_table_is_named", func() {
		client := service.NewClient("nosuchtable")
		_, err := client.AddEntity(ctx, entity("r", nil), nil)
		refused(err, 404, "TableNotFound")
		_, err = list(client, "")
		refused(err, 404, "TableNotFound")
	}},
	{"every_type_comes_back", func() {
		client := table()
		values := properties{
			"text":  "grüße 😀 it's",
			"empty": "",
			"small": int32(-42),
			"big":   aztables.EDMInt64(1 << 40),
			"ratio": 3.25,
			"yes":   true,
			"no":    false,
			"when":  aztables.EDMDateTime(time.Date(2020, 2, 29, 1, 2, 3, 456700, time.UTC)),
			"id":    aztables.EDMGUID("a455c695-df98-5678-aaaa-81d3367e5a34"),
			"bytes": aztables.EDMBinary([]byte{0, 1, 255}),
		}
		made := got(client.AddEntity(ctx, entity("r", values), nil))
		found := read(client, "p", "r")
		for name, value := range values {
			if when, is := value.(aztables.EDMDateTime); is {
				same(time.Time(found.Properties[name].(aztables.EDMDateTime)).UTC(), time.Time(when))
				continue
			}
			same(found.Properties[name], value)
		}
		same(found.ETag, string(made.ETag))
		if time.Time(found.Timestamp).Year() < 2020 {
			fail("no time stamp: %v", found.Timestamp)
		}
	}},
	{"levels_of_metadata_differ", func() {
		client := table()
		got(client.AddEntity(ctx, entity("r", properties{"big": aztables.EDMInt64(5)}), nil))
		for _, level := range []struct {
			format aztables.MetadataFormat
			has    []string
			lacks  []string
		}{
			{aztables.MetadataFormatNone, []string{"Timestamp", "big"}, []string{"odata.etag", "odata.metadata", "big@odata.type"}},
			{aztables.MetadataFormatMinimal, []string{"odata.etag", "odata.metadata", "big@odata.type"}, []string{"odata.id", "odata.editLink"}},
			{aztables.MetadataFormatFull, []string{"odata.type", "odata.id", "odata.etag", "odata.editLink", "Timestamp@odata.type"}, nil},
		} {
			found := properties{}
			answer := got(client.GetEntity(ctx, "p", "r", &aztables.GetEntityOptions{Format: &level.format}))
			must(json.Unmarshal(answer.Value, &found))
			for _, name := range level.has {
				if _, is := found[name]; !is {
					fail("%s has no %s: %v", level.format, name, found)
				}
			}
			for _, name := range level.lacks {
				if _, is := found[name]; is {
					fail("%s has %s: %v", level.format, name, found)
				}
			}
		}
	}},
	{"keys_may_be_odd", func() {
		client := table()
		// This library refuses empty keys itself, and doubles quotes in the bodies that it writes.
		for _, key := range []string{" ", "a b", "100%", "ü", "😀", "+", "a&b=c", "(x)", "%27", "~"} {
			got(client.AddEntity(ctx, entityOf(key, key, properties{"v": key}), nil))
			same(read(client, key, key).Properties["v"], key)
			put(client, entityOf(key, key, properties{"w": int32(1)}), aztables.UpdateModeReplace)
			got(merge(client, entityOf(key, key, properties{"w": int32(2)}), aztables.UpdateModeMerge, nil))
			quoted := strings.ReplaceAll(key, "'", "''")
			same(rows(client, fmt.Sprintf("PartitionKey eq '%s' and RowKey eq '%s'", quoted, quoted)), []string{key})
			got(client.DeleteEntity(ctx, key, key, nil))
		}
	}},
	{"an_insert_meets_what_is_there", func() {
		client := table()
		got(client.AddEntity(ctx, entity("r", nil), nil))
		_, err := client.AddEntity(ctx, entity("r", nil), nil)
		refused(err, 409, "EntityAlreadyExists")
	}},
	{"what_is_missing_is_not_found", func() {
		client := table()
		_, err := client.GetEntity(ctx, "p", "r", nil)
		refused(err, 404, "ResourceNotFound")
		_, err = merge(client, entity("r", nil), aztables.UpdateModeMerge, nil)
		refused(err, 404, "ResourceNotFound")
		_, err = client.DeleteEntity(ctx, "p", "r", nil)
		refused(err, 404, "ResourceNotFound")
	}},
	{"updates_merge_or_replace", func() {
		client := table()
		got(client.AddEntity(ctx, entity("r", properties{"a": int32(1), "b": int32(2)}), nil))
		got(merge(client, entity("r", properties{"b": int32(3)}), aztables.UpdateModeMerge, nil))
		same(read(client, "p", "r").Properties, properties{"a": int32(1), "b": int32(3)})
		got(merge(client, entity("r", properties{"c": int32(4)}), aztables.UpdateModeReplace, nil))
		same(read(client, "p", "r").Properties, properties{"c": int32(4)})
		put(client, entity("r", properties{"d": int32(5)}), aztables.UpdateModeMerge)
		same(read(client, "p", "r").Properties, properties{"c": int32(4), "d": int32(5)})
		put(client, entity("r", properties{"d": "text"}), aztables.UpdateModeReplace)
		same(read(client, "p", "r").Properties, properties{"d": "text"})
		put(client, entity("new", nil), aztables.UpdateModeMerge)
		put(client, entity("newer", nil), aztables.UpdateModeReplace)
		same(rows(client, ""), []string{"new", "newer", "r"})
	}},
	{"a_tag_guards_an_update", func() {
		client := table()
		got(client.AddEntity(ctx, entity("r", properties{"n": int32(1)}), nil))
		tag := got(client.GetEntity(ctx, "p", "r", nil)).ETag
		done := got(merge(client, entity("r", properties{"n": int32(2)}), aztables.UpdateModeReplace, &tag))
		if done.ETag == tag {
			fail("the tag stayed %s", tag)
		}
		_, err := merge(client, entity("r", nil), aztables.UpdateModeReplace, &tag)
		refused(err, 412, "UpdateConditionNotSatisfied")
		_, err = merge(client, entity("r", nil), aztables.UpdateModeMerge, &tag)
		refused(err, 412, "UpdateConditionNotSatisfied")
		_, err = client.DeleteEntity(ctx, "p", "r", &aztables.DeleteEntityOptions{IfMatch: &tag})
		refused(err, 412, "UpdateConditionNotSatisfied")
		got(client.DeleteEntity(ctx, "p", "r", &aztables.DeleteEntityOptions{IfMatch: &done.ETag}))
	}},
	{"racing_increments_lose_nothing", func() {
		client := table()
		got(client.AddEntity(ctx, entity("r", properties{"n": int32(0)}), nil))
		together(8, func(int) error {
			for done := 0; done < 5; {
				answer, err := client.GetEntity(ctx, "p", "r", nil)
				if err != nil {
					return err
				}
				n := parsed(answer.Value).Properties["n"].(int32)
				_, err = merge(client, entity("r", properties{"n": n + 1}), aztables.UpdateModeReplace, &answer.ETag)
				var refusal *azcore.ResponseError
				switch {
				case err == nil:
					done++
				case errors.As(err, &refusal) && refusal.StatusCode == http.StatusPreconditionFailed:
				default:
					return err
				}
			}
			return nil
		})
		same(read(client, "p", "r").Properties["n"], int32(40))
	}},
	{"a_transaction_does_all", func() {
		client := table()
		for _, row := range []string{"u", "m", "d"} {
			got(client.AddEntity(ctx, entity(row, properties{"a": int32(1), "b": int32(1)}), nil))
		}
		two := properties{"a": int32(2)}
		must(submit(client,
			action(aztables.TransactionTypeAdd, entity("c", two)),
			action(aztables.TransactionTypeUpdateReplace, entity("u", two)),
			action(aztables.TransactionTypeUpdateMerge, entity("m", two)),
			action(aztables.TransactionTypeInsertReplace, entity("x", two)),
			action(aztables.TransactionTypeInsertMerge, entity("y", two)),
			action(aztables.TransactionTypeDelete, entity("d", nil))))
		same(rows(client, ""), []string{"c", "m", "u", "x", "y"})
		same(read(client, "p", "m").Properties, properties{"a": int32(2), "b": int32(1)})
		same(read(client, "p", "u").Properties, two)
	}},
	{"a_transaction_fails_as_a_whole_and_tells_the_index", func() {
		client := table()
		got(client.AddEntity(ctx, entity("there", nil), nil))
		err := submit(client,
			action(aztables.TransactionTypeAdd, entity("b0", nil)),
			action(aztables.TransactionTypeInsertMerge, entity("b1", nil)),
			action(aztables.TransactionTypeAdd, entity("there", nil)))
		if err == nil || !strings.Contains(err.Error(), "EntityAlreadyExists") || !strings.Contains(err.Error(), "\"2:") {
			fail("expected EntityAlreadyExists of operation 2, got %v", err)
		}
		tag := azcore.ETag("W/\"datetime'2020-07-24T14%3A34%3A48.4767Z'\"")
		stale := action(aztables.TransactionTypeUpdateMerge, entity("there", nil))
		stale.IfMatch = &tag
		err = submit(client, action(aztables.TransactionTypeAdd, entity("b0", nil)), stale)
		if err == nil || !strings.Contains(err.Error(), "UpdateConditionNotSatisfied") || !strings.Contains(err.Error(), "\"1:") {
			fail("expected UpdateConditionNotSatisfied of operation 1, got %v", err)
		}
		same(rows(client, ""), []string{"there"})
	}},
	{"a_transaction_has_one_partition_key", func() {
		client := table()
		err := submit(client,
			action(aztables.TransactionTypeAdd, entityOf("p", "r", nil)),
			action(aztables.TransactionTypeAdd, entityOf("q", "r", nil)))
		if err == nil || !strings.Contains(err.Error(), "CommandsInBatchActOnDifferentPartitions") || !strings.Contains(err.Error(), "\"1:") {
			fail("expected CommandsInBatchActOnDifferentPartitions of operation 1, got %v", err)
		}
		same(rows(client, ""), []string{})
	}},
	{"pages_continue_from_their_token", func() {
		client := table()
		fill(client, 25)
		first := got(client.NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: to.Ptr[int32](10)}).NextPage(ctx))
		same(len(first.Entities), 10)
		next := &aztables.ListEntitiesOptions{Top: to.Ptr[int32](10), NextPartitionKey: first.NextPartitionKey, NextRowKey: first.NextRowKey}
		found := []int32{}
		for pager := service.NewClient(tableName(client)).NewListEntitiesPager(next); pager.More(); {
			for _, one := range got(pager.NextPage(ctx)).Entities {
				found = append(found, parsed(one).Properties["n"].(int32))
			}
		}
		same([]any{len(found), found[0], found[14]}, []any{15, int32(10), int32(24)})
	}},
	{"a_page_has_at_most_1000_entities", func() {
		client := table()
		fill(client, 1100)
		sizes := []int{}
		for pager := client.NewListEntitiesPager(nil); pager.More(); {
			sizes = append(sizes, len(got(pager.NextPage(ctx)).Entities))
		}
		same(slices.Max(sizes), 1000)
	}},
	{"filters_select", func() {
		client := table()
		got(client.AddEntity(ctx, entity("1", properties{"i": int32(5), "s": "it's", "b": true, "d": 1.5}), nil))
		got(client.AddEntity(ctx, entity("2", properties{"i": int32(7), "big": aztables.EDMInt64(1 << 40)}), nil))
		got(client.AddEntity(ctx, entityOf("q", "3", properties{"x": aztables.EDMBinary([]byte{1, 255})}), nil))
		for filter, expected := range map[string][]string{
			"i eq 5":                                   {"1"},
			"s eq 'it''s'":                             {"1"},
			"b eq true and d lt 2.0":                   {"1"},
			"big eq 1099511627776L":                    {"2"},
			"x eq X'01ff'":                             {"3"},
			"PartitionKey ge 'p' and RowKey gt '1'":    {"2", "3"},
			"PartitionKey eq 'p' or RowKey eq '3'":     {"1", "2", "3"},
			"not (i eq 5)":                             {"2", "3"},
			"Timestamp gt datetime'2020-01-01T00:00Z'": {"1", "2", "3"},
		} {
			if found := rows(client, filter); !reflect.DeepEqual(found, expected) {
				fail("%s: expected %v, got %v", filter, expected, found)
			}
		}
		only := got(client.NewListEntitiesPager(&aztables.ListEntitiesOptions{Select: to.Ptr("i")}).NextPage(ctx))
		same(parsed(only.Entities[0]).Properties, properties{"i": int32(5)})
	}},
	{"a_wrong_filter_is_refused", func() {
		client := table()
		got(client.AddEntity(ctx, entity("r", nil), nil))
		_, err := list(client, "aaa bbb ccc")
		if answer := refused(err, 400, "InvalidInput"); !strings.Contains(answer.Error(), "Syntax error") {
			fail("no syntax error named: %s", answer.Error())
		}
	}},
	{"properties_have_limits", func() {
		client := table()
		many := func(count int) properties {
			made := properties{}
			for n := range count {
				made[fmt.Sprintf("p%d", n)] = int32(n)
			}
			return made
		}
		got(client.AddEntity(ctx, entity("most", many(252)), nil))
		_, err := client.AddEntity(ctx, entity("more", many(253)), nil)
		refused(err, 400, "TooManyProperties")
		_, err = client.AddEntity(ctx, entity("value", properties{"s": strings.Repeat("x", 32769)}), nil)
		refused(err, 400, "PropertyValueTooLarge")
	}},
	{"a_table_sas_permits_what_it_says", func() {
		client := table()
		got(client.AddEntity(ctx, entity("r", nil), nil))
		reader := bySAS(client, sas(client, aztables.SASSignatureValues{Permissions: "r", ExpiryTime: in(1)}))
		same(rows(reader, ""), []string{"r"})
		_, err := reader.AddEntity(ctx, entity("s", nil), nil)
		refused(err, 403, "AuthorizationPermissionMismatch")
		writer := bySAS(client, sas(client, aztables.SASSignatureValues{Permissions: "au", StartTime: in(-1), ExpiryTime: in(1)}))
		got(writer.AddEntity(ctx, entity("s", nil), nil))
		put(writer, entity("u", nil), aztables.UpdateModeReplace)
		_, err = list(writer, "")
		refused(err, 403, "AuthorizationPermissionMismatch")
	}},
	{"a_sas_ends", func() {
		client := table()
		late := bySAS(client, sas(client, aztables.SASSignatureValues{Permissions: "r", StartTime: in(-2), ExpiryTime: in(-1)}))
		_, err := list(late, "")
		refused(err, 403, "AuthenticationFailed")
	}},
	{"an_account_sas_permits_what_it_says", func() {
		client := table()
		values := aztables.AccountSASSignatureValues{Permissions: "rl", Services: "t", ResourceTypes: "sco", ExpiryTime: in(1)}
		query := got(values.Sign(got(aztables.NewSharedKeyCredential(account, key))))
		reader := bySAS(client, query.Encode())
		same(rows(reader, ""), []string{})
		_, err := reader.AddEntity(ctx, entity("s", nil), nil)
		refused(err, 403, "AuthorizationPermissionMismatch")
	}},
	{"a_stored_policy_rules_its_sas", func() {
		client := table()
		got(client.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{TableACL: []*aztables.SignedIdentifier{{
			ID:           to.Ptr("reader"),
			AccessPolicy: &aztables.AccessPolicy{Start: to.Ptr(in(-1)), Expiry: to.Ptr(in(1)), Permission: to.Ptr("r")},
		}}}))
		found := got(client.GetAccessPolicy(ctx, nil)).SignedIdentifiers
		same([]any{len(found), *found[0].ID, *found[0].AccessPolicy.Permission}, []any{1, "reader", "r"})
		reader := bySAS(client, sas(client, aztables.SASSignatureValues{Identifier: "reader"}))
		same(rows(reader, ""), []string{})
		got(client.SetAccessPolicy(ctx, &aztables.SetAccessPolicyOptions{}))
		_, err := list(reader, "")
		refused(err, 403, "AuthenticationFailed")
	}},
	{"properties_of_the_service_are_kept", func() {
		days := &aztables.RetentionPolicy{Enabled: to.Ptr(true), Days: to.Ptr[int32](5)}
		got(service.SetProperties(ctx, aztables.ServiceProperties{
			Logging: &aztables.Logging{
				Read: to.Ptr(true), Write: to.Ptr(false), Delete: to.Ptr(true), RetentionPolicy: days, Version: to.Ptr("1.0"),
			},
			HourMetrics: &aztables.Metrics{Enabled: to.Ptr(true), IncludeAPIs: to.Ptr(true), RetentionPolicy: days, Version: to.Ptr("1.0")},
			Cors: []*aztables.CorsRule{{
				AllowedOrigins: to.Ptr("*"), AllowedMethods: to.Ptr("GET"), AllowedHeaders: to.Ptr("*"), ExposedHeaders: to.Ptr("*"),
				MaxAgeInSeconds: to.Ptr[int32](60),
			}},
		}, nil))
		found := got(service.GetProperties(ctx, nil))
		same([]any{*found.Logging.Read, *found.Logging.Write, *found.HourMetrics.RetentionPolicy.Days, len(found.Cors)}, []any{true, false, int32(5), 1})
	}},
	{"a_wrong_key_is_refused", func() {
		credential := got(aztables.NewSharedKeyCredential(account, "d3Jvbmc="))
		wrong := got(aztables.NewServiceClientWithSharedKey(endpoint, credential, nil))
		_, err := wrong.NewListTablesPager(nil).NextPage(ctx)
		refused(err, 403, "AuthenticationFailed")
	}},
	{"retries_go_through_throttling", func() {
		if !throttled {
			return
		}
		client := table()
		together(4, func(writer int) error {
			for batch := range 12 {
				actions := []aztables.TransactionAction{}
				for n := range 100 {
					actions = append(actions, action(aztables.TransactionTypeInsertReplace, entity(fmt.Sprintf("%d-%d-%d", writer, batch, n), nil)))
				}
				if err := submit(client, actions...); err != nil {
					return err
				}
			}
			return nil
		})
		same(len(rows(client, "")), 4_800)
		if busy.Load() == 0 {
			fail("4,800 entities of one partition met no limit")
		}
		fmt.Printf("      %d answers 503\n", busy.Load())
	}},
}

// together runs a function so many times at once, and fails with the first error.
func together(count int, run func(number int) error) {
	failed := make(chan error, count)
	var all sync.WaitGroup
	for number := range count {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := run(number); err != nil {
				failed <- err
			}
		}()
	}
	all.Wait()
	select {
	case err := <-failed:
		must(err)
	default:
	}
}

func known() map[string]string {
	found := map[string]string{}
	file, err := os.Open(os.Getenv("TABLES_KNOWN"))
	if err != nil {
		return found
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, why, is := strings.Cut(lines.Text(), ": "); is && !strings.HasPrefix(name, "#") {
			found[name] = why
		}
	}
	return found
}

func attempt(one check) (failed *failure) {
	defer func() {
		if caught := recover(); caught != nil {
			if as, is := caught.(failure); is {
				failed = &as
				return
			}
			failed = &failure{fmt.Sprint(caught)}
		}
	}()
	one.run()
	return nil
}

func main() {
	connection = os.Args[1]
	throttled = len(os.Args) > 2 && os.Args[2] == "throttle"
	if connection == "UseDevelopmentStorage=true" {
		// This library does not know the short form.
		connection = devConnection
	}
	for _, part := range strings.Split(connection, ";") {
		switch name, value, _ := strings.Cut(part, "="); name {
		case "AccountName":
			account = value
		case "AccountKey":
			key = value
		case "TableEndpoint":
			endpoint = strings.TrimSuffix(value, "/")
		}
	}
	options := &aztables.ClientOptions{ClientOptions: policy.ClientOptions{PerRetryPolicies: []policy.Policy{counting{}}}}
	if throttled {
		options.Retry.MaxRetries = 10
	}
	service = got(aztables.NewServiceClientFromConnectionString(connection, options))
	known, passed, failed, expected := known(), 0, 0, 0
	for _, one := range checks {
		if throttled && !strings.Contains(one.name, "throttling") {
			continue
		}
		switch failure := attempt(one); {
		case failure == nil:
			passed++
			fmt.Printf("ok    %s\n", one.name)
		case known[one.name] != "":
			expected++
			fmt.Printf("known %s: %s\n", one.name, known[one.name])
		default:
			failed++
			text := strings.Join(strings.Fields(failure.text), " ")
			fmt.Printf("FAIL  %s: %s\n", one.name, text[:min(len(text), 400)])
		}
	}
	fmt.Printf("go: %d passed, %d failed, %d known\n", passed, failed, expected)
	if failed > 0 {
		os.Exit(1)
	}
}
