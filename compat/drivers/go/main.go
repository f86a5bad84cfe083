// What an application does through the Go driver. `suite HOST:PORT`; a line for each test and
// `go: N passed, N failed` at the end.
package main

import (
	"bytes"
	"context"
	"fmt"
	"math/big"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"
	"github.com/apache/cassandra-gocql-driver/v2/lz4"
	"gopkg.in/inf.v0"
)

const ks = "compat_go"

var address string

type test struct {
	name string
	run  func(s *gocql.Session)
}

func cluster(version int, keyspace string) *gocql.ClusterConfig {
	host, port, _ := net.SplitHostPort(address)
	c := gocql.NewCluster(host)
	c.Port, _ = strconv.Atoi(port)
	c.ProtoVersion = version
	c.Keyspace = keyspace
	c.Timeout = 20 * time.Second
	c.ConnectTimeout = 20 * time.Second
	c.Consistency = gocql.LocalQuorum
	c.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy())
	return c
}

func open(version int, keyspace string) *gocql.Session {
	s, err := cluster(version, keyspace).CreateSession()
	must(err)
	return s
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func same(got, expected any) {
	if !reflect.DeepEqual(got, expected) {
		panic(fmt.Errorf("expected %v, got %v", expected, got))
	}
}

func do(s *gocql.Session, statement string, values ...any) {
	must(s.Query(strings.ReplaceAll(statement, "KS.", ks+"."), values...).Exec())
}

func q(s *gocql.Session, statement string, values ...any) *gocql.Query {
	return s.Query(strings.ReplaceAll(statement, "KS.", ks+"."), values...)
}

func types(s *gocql.Session) {
	uuid, _ := gocql.ParseUUID("123e4567-e89b-42d3-a456-426614174000")
	timeuuid, _ := gocql.ParseUUID("50554d6e-29bb-11e5-b345-feff819cdc9f")
	huge, _ := new(big.Int).SetString("340282366920938463463374607431768211456", 10)
	all := []struct {
		kind   string
		values []any
	}{
		{"ascii", []any{"", "abc"}},
		{"bigint", []any{int64(0), int64(-1 << 63), int64(1<<63 - 1)}},
		{"blob", []any{[]byte{}, []byte{0, 255}}},
		{"boolean", []any{true, false}},
		{"date", []any{time.Date(2020, 2, 29, 0, 0, 0, 0, time.UTC)}},
		{"decimal", []any{inf.NewDec(-150, 2), inf.NewDec(0, 0)}},
		{"double", []any{0.0, -1.5e300}},
		{"duration", []any{gocql.Duration{Months: 1, Days: 2, Nanoseconds: 3}}},
		{"float", []any{float32(0.5), float32(-1)}},
		{"inet", []any{net.ParseIP("127.0.0.1").To4(), net.ParseIP("::1")}},
		{"int", []any{0, -1 << 31, 1<<31 - 1}},
		{"smallint", []any{int16(-1 << 15), int16(1<<15 - 1)}},
		{"text", []any{"", "é日本😀", strings.Repeat("x", 100000)}},
		{"time", []any{23*time.Hour + 59*time.Minute}},
		{"timestamp", []any{time.Date(2020, 2, 29, 1, 2, 3, 4000000, time.UTC)}},
		{"timeuuid", []any{timeuuid}},
		{"tinyint", []any{int8(-128), int8(127)}},
		{"uuid", []any{uuid}},
		{"varint", []any{huge, big.NewInt(-129)}},
		{"list<int>", []any{[]int{1, 2, 1}}},
		{"set<text>", []any{[]string{"a", "b"}}},
		{"map<text, int>", []any{map[string]int{"a": 1, "b": 2}}},
		{"frozen<list<int>>", []any{[]int{}, []int{3, 1}}},
		{"map<int, frozen<list<text>>>", []any{map[int][]string{1: {"a"}, 2: {"b", "c"}}}},
		{"vector<float, 3>", []any{[]float32{1, 2, 3.5}}},
	}
	for i, t := range all {
		table := fmt.Sprintf("KS.type_%d", i)
		do(s, fmt.Sprintf("CREATE TABLE %s (k int PRIMARY KEY, v %s)", table, t.kind))
		for k, v := range t.values {
			do(s, fmt.Sprintf("INSERT INTO %s (k, v) VALUES (?, ?)", table), k, v)
			got := reflect.New(reflect.TypeOf(v))
			must(q(s, fmt.Sprintf("SELECT v FROM %s WHERE k = ?", table), k).Scan(got.Interface()))
			if b, ok := v.([]byte); ok {
				same(bytes.Equal(got.Elem().Bytes(), b), true)
			} else if fmt.Sprint(got.Elem().Interface()) != fmt.Sprint(v) {
				panic(fmt.Errorf("%s: expected %v, got %v", t.kind, v, got.Elem().Interface()))
			}
		}
		do(s, fmt.Sprintf("INSERT INTO %s (k, v) VALUES (?, ?)", table), 99, nil)
	}
	do(s, "CREATE TABLE KS.tuples (k int PRIMARY KEY, v tuple<int, text>)")
	do(s, "INSERT INTO KS.tuples (k, v) VALUES (1, (?, ?))", 5, "a")
	var a int
	var b string
	must(q(s, "SELECT v FROM KS.tuples WHERE k = 1").Scan(&a, &b))
	same([]any{a, b}, []any{5, "a"})
}

func paging(s *gocql.Session) {
	do(s, "CREATE TABLE KS.pages (k int, c int, PRIMARY KEY (k, c))")
	for c := 0; c < 100; c++ {
		do(s, "INSERT INTO KS.pages (k, c) VALUES (1, ?)", c)
	}
	for _, size := range []int{1, 7, 50, 100, 1000} {
		iter := q(s, "SELECT c FROM KS.pages WHERE k = 1").PageSize(size).Iter()
		n, c := 0, 0
		for iter.Scan(&c) {
			same(c, n)
			n++
		}
		must(iter.Close())
		same(n, 100)
	}
	first := q(s, "SELECT c FROM KS.pages").PageSize(10).Iter()
	state := append([]byte{}, first.PageState()...)
	must(first.Close())
	var c int
	must(q(s, "SELECT c FROM KS.pages").PageSize(10).PageState(state).Iter().Close())
	iter := q(s, "SELECT c FROM KS.pages").PageSize(10).PageState(state).Iter()
	iter.Scan(&c)
	same(c, 10)
	must(iter.Close())
}

func prepared(s *gocql.Session) {
	do(s, "CREATE TABLE KS.prep (a int, b text, c int, v int, PRIMARY KEY ((a, b), c))")
	do(s, "INSERT INTO KS.prep (c, b, a, v) VALUES (?, ?, ?, ?)", 1, "x", 2, 3)
	do(s, "INSERT INTO KS.prep (c, b, a, v) VALUES (?, ?, ?, ?)", 2, "x", 2, gocql.UnsetValue)
	do(s, "INSERT INTO KS.prep (c, b, a, v) VALUES (:c, :b, :a, :v)", 3, "x", 2, 5)
	rows, err := q(s, "SELECT c, v FROM KS.prep WHERE a = ? AND b = ?", 2, "x").Iter().SliceMap()
	must(err)
	same(len(rows), 3)
	same([]any{rows[0]["v"], rows[2]["v"]}, []any{3, 5})
	do(s, "ALTER TABLE KS.prep ADD w text")
	rows, err = q(s, "SELECT * FROM KS.prep WHERE a = ? AND b = ?", 2, "x").Iter().SliceMap()
	must(err)
	same(len(rows), 3)
}

func manyInFlight(s *gocql.Session) {
	do(s, "CREATE TABLE KS.many (k int PRIMARY KEY, v int)")
	var wait sync.WaitGroup
	failures := make(chan error, 2000)
	for w := 0; w < 50; w++ {
		wait.Add(1)
		go func(w int) {
			defer wait.Done()
			for i := 0; i < 40; i++ {
				if err := q(s, "INSERT INTO KS.many (k, v) VALUES (?, ?)", w*40+i, w).Exec(); err != nil {
					failures <- err
				}
			}
		}(w)
	}
	wait.Wait()
	close(failures)
	for err := range failures {
		panic(err)
	}
	var n int64
	must(q(s, "SELECT count(*) FROM KS.many").Scan(&n))
	same(n, int64(2000))
}

func batches(s *gocql.Session) {
	do(s, "CREATE TABLE KS.batched (k int, c int, v text, PRIMARY KEY (k, c))")
	b := s.Batch(gocql.LoggedBatch)
	for c := 0; c < 10; c++ {
		b.Query("INSERT INTO "+ks+".batched (k, c, v) VALUES (?, ?, ?)", 1, c, fmt.Sprint(c))
	}
	b.Query("INSERT INTO " + ks + ".batched (k, c, v) VALUES (1, 10, 'ten')")
	must(b.Exec())
	var n int64
	must(q(s, "SELECT count(*) FROM KS.batched").Scan(&n))
	same(n, int64(11))
	do(s, "CREATE TABLE KS.counted (k int PRIMARY KEY, n counter)")
	b = s.Batch(gocql.CounterBatch)
	b.Query("UPDATE "+ks+".counted SET n = n + ? WHERE k = 1", 5)
	b.Query("UPDATE "+ks+".counted SET n = n + ? WHERE k = 1", 6)
	must(b.Exec())
	must(q(s, "SELECT n FROM KS.counted").Scan(&n))
	same(n, int64(11))
}

func conditional(s *gocql.Session) {
	do(s, "CREATE TABLE KS.lwt (k int PRIMARY KEY, v int)")
	var k, v int
	applied, err := q(s, "INSERT INTO KS.lwt (k, v) VALUES (1, 1) IF NOT EXISTS").ScanCAS(&k, &v)
	must(err)
	same(applied, true)
	applied, err = q(s, "INSERT INTO KS.lwt (k, v) VALUES (1, 2) IF NOT EXISTS").ScanCAS(&k, &v)
	must(err)
	same([]any{applied, v}, []any{false, 1})
	b := s.Batch(gocql.LoggedBatch)
	b.Query("UPDATE " + ks + ".lwt SET v = 5 WHERE k = 1 IF v = 1")
	found := map[string]any{}
	applied, _, err = b.MapExecCAS(found)
	must(err)
	same(applied, true)
}

type place struct {
	Street string   `cql:"street"`
	Number int      `cql:"number"`
	Tags   []string `cql:"tags"`
}

func userTypes(s *gocql.Session) {
	do(s, "CREATE TYPE KS.address (street text, number int, tags frozen<set<text>>)")
	do(s, "CREATE TABLE KS.people (k int PRIMARY KEY, a address, l list<frozen<address>>)")
	want := place{"s", 5, []string{"x"}}
	do(s, "INSERT INTO KS.people (k, a, l) VALUES (?, ?, ?)", 1, want, []place{want})
	var got place
	var list []place
	must(q(s, "SELECT a, l FROM KS.people").Scan(&got, &list))
	same(got, want)
	same(list, []place{want})
}

func metadata(s *gocql.Session) {
	do(s, "CREATE TABLE KS.meta (a int, b text, c timeuuid, d int, s int static, v list<int>, PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)")
	var table *gocql.TableMetadata
	for i := 0; i < 50 && table == nil; i++ {
		// Known a second after the event, as the driver waits for more of them.
		if found, err := s.KeyspaceMetadata(ks); err == nil {
			table = found.Tables["meta"]
		}
		time.Sleep(100 * time.Millisecond)
	}
	same([]string{table.PartitionKey[0].Name, table.PartitionKey[1].Name}, []string{"a", "b"})
	same([]string{table.ClusteringColumns[0].Name, table.ClusteringColumns[1].Name}, []string{"c", "d"})
	same(table.ClusteringColumns[0].Order, gocql.DESC)
	same(table.Columns["v"].Type.Type(), gocql.TypeList)
	found, err := s.KeyspaceMetadata(ks)
	must(err)
	same(strings.HasSuffix(found.StrategyClass, "SimpleStrategy"), true)
}

func schemaEvents(s *gocql.Session) {
	other := open(4, "")
	defer other.Close()
	_, err := other.KeyspaceMetadata(ks)
	must(err)
	do(s, "CREATE TABLE KS.event (k int PRIMARY KEY)")
	seen := func(want bool) {
		for i := 0; i < 100; i++ {
			found, err := other.KeyspaceMetadata(ks)
			must(err)
			if _, there := found.Tables["event"]; there == want {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		panic(fmt.Errorf("no schema event within ten seconds"))
	}
	seen(true)
	do(s, "DROP TABLE KS.event")
	seen(false)
}

func tokens(s *gocql.Session) {
	do(s, "CREATE TABLE KS.tok (a int, b text, PRIMARY KEY ((a, b)))")
	for i := 0; i < 60; i++ {
		query := q(s, "INSERT INTO KS.tok (a, b) VALUES (?, ?)", i, strings.Repeat("é", i))
		must(query.Exec())
		var t int64
		must(q(s, "SELECT token(a, b) FROM KS.tok WHERE a = ? AND b = ?", i, strings.Repeat("é", i)).Scan(&t))
	}
	var last *int64
	iter := q(s, "SELECT token(a, b) FROM KS.tok").Iter()
	var t int64
	for iter.Scan(&t) {
		if last != nil && *last > t {
			panic(fmt.Errorf("tokens out of order"))
		}
		copied := t
		last = &copied
	}
	must(iter.Close())
}

func failures(s *gocql.Session) {
	for statement, code := range map[string]int{
		"SELEC * FROM t":                               gocql.ErrCodeSyntax,
		"SELECT * FROM KS.nothing":                     gocql.ErrCodeInvalid,
		"CREATE TABLE KS.many (k int PRIMARY KEY)":     gocql.ErrCodeAlreadyExists,
		"SELECT nothing FROM KS.many":                  gocql.ErrCodeInvalid,
		"INSERT INTO KS.many (k, v) VALUES (1, 'text')": gocql.ErrCodeInvalid,
	} {
		err := q(s, statement).Exec()
		request, ok := err.(gocql.RequestError)
		if !ok {
			panic(fmt.Errorf("%s: %v", statement, err))
		}
		same(request.Code(), code)
	}
}

func tracing(s *gocql.Session) {
	var out bytes.Buffer
	must(q(s, "SELECT v FROM KS.many WHERE k = 1").Trace(gocql.NewTraceWriter(s, &out)).Exec())
	same(strings.Contains(out.String(), "Tracing session"), true)
}

func versions(_ *gocql.Session) {
	for _, version := range []int{3, 4, 5} {
		for _, compressed := range []bool{false, true} {
			c := cluster(version, ks)
			if compressed {
				c.Compressor = lz4.LZ4Compressor{}
			}
			s, err := c.CreateSession()
			must(err)
			long := strings.Repeat("z", 200000)
			must(s.Query("INSERT INTO type_12 (k, v) VALUES (?, ?)", 50, long).Exec())
			var got string
			must(s.Query("SELECT v FROM type_12 WHERE k = ?", 50).Scan(&got))
			same(got == long, true)
			s.Close()
		}
	}
}

func cancelling(s *gocql.Session) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if q(s, "SELECT v FROM KS.many WHERE k = 1").ExecContext(ctx) == nil {
		panic(fmt.Errorf("a cancelled query succeeded"))
	}
	var v int
	must(q(s, "SELECT v FROM KS.many WHERE k = 1").Scan(&v))
}

func attempt(t test, s *gocql.Session) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	t.run(s)
	return nil
}

func main() {
	address = os.Args[1]
	tests := []test{
		{"types", types}, {"paging", paging}, {"prepared statements", prepared}, {"many in flight", manyInFlight},
		{"batches", batches}, {"conditional updates", conditional}, {"user types", userTypes}, {"metadata", metadata},
		{"schema events", schemaEvents}, {"token awareness", tokens}, {"errors", failures}, {"tracing", tracing},
		{"versions and compression", versions}, {"cancelling", cancelling},
	}
	failed := 0
	defer func() {
		if r := recover(); r != nil {
			fmt.Println("FAIL to start:", r)
			failed = len(tests)
		}
		fmt.Printf("go: %d passed, %d failed\n", len(tests)-failed, failed)
		if failed > 0 {
			os.Exit(1)
		}
	}()
	s := open(4, "")
	do(s, "DROP KEYSPACE IF EXISTS "+ks)
	do(s, "CREATE KEYSPACE "+ks+" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
	for _, t := range tests {
		if err := attempt(t, s); err != nil {
			failed++
			fmt.Printf("FAIL %s: %.300s\n", t.name, err)
		} else {
			fmt.Printf("PASS %s\n", t.name)
		}
	}
	do(s, "DROP KEYSPACE "+ks)
}
