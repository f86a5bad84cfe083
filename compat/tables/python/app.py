"""What an application does with Azure's library for tables in Python, against any table storage.

`app.py CONNECTION-STRING [throttle]`; a line for each check, `python: N passed, N failed, N known` at the end. TABLES_KNOWN names a file of
checks that the other side is known to fail, TABLES_CERTIFICATE a PEM file to trust."""

import datetime
import json
import os
import sys
import threading
import time
import traceback
import uuid

from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.data.tables import (
    AccountSasPermissions,
    EdmType,
    EntityProperty,
    ResourceTypes,
    TableAccessPolicy,
    TableAnalyticsLogging,
    TableClient,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    TableSasPermissions,
    TableServiceClient,
    TableTransactionError,
    UpdateMode,
    generate_account_sas,
    generate_table_sas,
)

CONNECTION = sys.argv[1]
THROTTLED = sys.argv[2:] == ["throttle"]
CERTIFICATE = os.environ.get("TABLES_CERTIFICATE")
OPTIONS = {"connection_verify": CERTIFICATE} if CERTIFICATE else {}
UTC = datetime.timezone.utc
CHECKS = []

SERVICE = TableServiceClient.from_connection_string(CONNECTION, **OPTIONS)
ACCOUNT = SERVICE.account_name
KEY = SERVICE.credential.named_key.key
ENDPOINT = SERVICE.url


def check(f):
    CHECKS.append(f)
    return f


def same(got, expected):
    assert got == expected, f"expected {expected!r}, got {got!r}"


def code_of(error):
    """The library names the code in some errors only; all answers have it in a header or in their body."""
    code = getattr(error, "error_code", None)
    if code:
        return str(getattr(code, "value", code))
    header = error.response.headers.get("x-ms-error-code") if error.response is not None else None
    if header:
        return header
    body = error.response.text() if error.response is not None else ""
    return json.loads(body)["odata.error"]["code"] if body.startswith("{") else body[:60]


def refused(call, status, code, kind=HttpResponseError):
    try:
        call()
    except kind as error:
        same((error.status_code, code_of(error)), (status, code))
        return error
    except HttpResponseError as error:
        raise AssertionError(f"expected {kind.__name__}, got {type(error).__name__}: {error}") from error
    raise AssertionError(f"expected {status} {code}, and it was done")


def table():
    """A new table of its own name."""
    return SERVICE.create_table("python" + uuid.uuid4().hex[:12])


def entity(row, partition="p", **more):
    return {"PartitionKey": partition, "RowKey": row, **more}


def rows(entities):
    return [e["RowKey"] for e in entities]


def fill(t, count, partition="p", **more):
    for first in range(0, count, 100):
        t.submit_transaction(
            [("create", entity(f"{n:05}", partition, n=n, **more)) for n in range(first, min(count, first + 100))]
        )


@check
def tables_are_created_listed_and_deleted():
    prefix = "list" + uuid.uuid4().hex[:8]
    names = [f"{prefix}{n}" for n in "aBc"]
    for name in names:
        same(SERVICE.create_table(name).table_name, name)
    refused(lambda: SERVICE.create_table(names[0]), 409, "TableAlreadyExists", ResourceExistsError)
    refused(lambda: SERVICE.create_table(names[0].upper()), 409, "TableAlreadyExists", ResourceExistsError)
    SERVICE.create_table_if_not_exists(names[1])
    found = SERVICE.query_tables(f"TableName ge '{prefix}' and TableName lt '{prefix}~'")
    same(sorted(t.name for t in found), sorted(names))
    same([t.name for t in SERVICE.query_tables("TableName eq @n", parameters={"n": names[2]})], [names[2]])
    assert set(names) <= {t.name for t in SERVICE.list_tables()}
    for name in names:
        SERVICE.delete_table(name)
    same([t.name for t in SERVICE.query_tables(f"TableName eq '{names[0]}'")], [])


@check
def tables_come_in_pages():
    prefix = "page" + uuid.uuid4().hex[:8]
    names = [f"{prefix}{n}" for n in range(5)]
    for name in names:
        SERVICE.create_table(name)
    pages = SERVICE.list_tables(results_per_page=2).by_page()
    sizes, found = [], []
    for page in pages:
        page = [t.name for t in page]
        sizes.append(len(page))
        found += page
    assert max(sizes) <= 2 and set(names) <= set(found), (sizes, found)
    for name in names:
        SERVICE.delete_table(name)


@check
def bad_table_names_are_refused():
    for name in ("1abc", "a-b"):
        try:
            SERVICE.create_table(name)
        except (ValueError, HttpResponseError):
            continue
        raise AssertionError(f"{name} was created")


@check
def a_missing_table_is_named():
    t = SERVICE.get_table_client("nosuchtable")
    refused(lambda: t.create_entity(entity("r")), 404, "TableNotFound", ResourceNotFoundError)
    refused(lambda: list(t.query_entities("PartitionKey eq 'p'")), 404, "TableNotFound", ResourceNotFoundError)


@check
def every_type_comes_back():
    t = table()
    values = {
        "text": "grüße 😀 it's",
        "empty": "",
        "small": 42,
        "least": -(2**31),
        "big": EntityProperty(2**40, EdmType.INT64),
        "most": EntityProperty(2**63 - 1, EdmType.INT64),
        "ratio": 3.25,
        "whole": 3.0,
        "nan": float("inf"),
        "yes": True,
        "no": False,
        "when": datetime.datetime(2020, 2, 29, 1, 2, 3, 456000, tzinfo=UTC),
        "old": datetime.datetime(1700, 1, 1, tzinfo=UTC),
        "id": uuid.UUID("a455c695-df98-5678-aaaa-81d3367e5a34"),
        "bytes": bytes(range(256)),
        "nothing": b"",
    }
    t.create_entity(entity("r", **values))
    got = t.get_entity("p", "r")
    for name, value in values.items():
        found = got[name]
        if isinstance(value, EntityProperty):
            same((found.value, found.edm_type), (value.value, EdmType.INT64))
        elif isinstance(value, datetime.datetime):
            same(found.astimezone(UTC).replace(tzinfo=UTC), value)
        else:
            same((type(found), found), (type(value), value))
    assert "none" not in got
    assert isinstance(got.metadata["timestamp"], datetime.datetime)
    assert got.metadata["etag"].startswith("W/\"datetime'"), got.metadata["etag"]


@check
def a_time_keeps_100_nanoseconds():
    t = table()
    t.create_entity(entity("r", at=EntityProperty("2020-11-07T01:23:12.1234567Z", EdmType.DATETIME)))
    same(t.get_entity("p", "r")["at"].tables_service_value, "2020-11-07T01:23:12.1234567Z")


@check
def null_is_absent():
    t = table()
    t.create_entity(entity("r", a=None, b=1))
    assert "a" not in t.get_entity("p", "r")
    t.update_entity(entity("r", b=None), mode=UpdateMode.MERGE)
    same(t.get_entity("p", "r")["b"], 1)


@check
def names_of_properties_are_case_sensitive():
    t = table()
    t.create_entity(entity("r", Birthday=1, birthday=2, größe=3))
    got = t.get_entity("p", "r")
    same((got["Birthday"], got["birthday"], got["größe"]), (1, 2, 3))


@check
def keys_may_be_odd():
    t = table()
    keys = ["", " ", "it's", "''", "a b", "100%", "ü", "😀", "+", "a&b=c", "(x)", "%27", "~", "a" * 512]
    for key in keys:
        t.create_entity(entity(key, key, v=key))
        same(t.get_entity(key, key)["v"], key)
        t.upsert_entity(entity(key, key, v=key, w=1), mode=UpdateMode.REPLACE)
        t.update_entity(entity(key, key, w=2), mode=UpdateMode.MERGE)
        got = t.query_entities("PartitionKey eq @p and RowKey eq @r", parameters={"p": key, "r": key})
        same([e["w"] for e in got], [2])
        t.delete_entity(key, key)
    same(list(t.list_entities()), [])


@check
def forbidden_keys_are_refused():
    t = table()
    for key in ("a/b", "a\\b", "a#b", "a?b", "a\tb", "a\x7fb"):
        try:
            t.create_entity(entity(key))
        except HttpResponseError as error:
            same(error.status_code, 400)
            continue
        raise AssertionError(f"{key!r} was stored")


@check
def an_insert_meets_what_is_there():
    t = table()
    made = t.create_entity(entity("r"))
    assert made["etag"].startswith("W/"), made
    refused(lambda: t.create_entity(entity("r")), 409, "EntityAlreadyExists", ResourceExistsError)


@check
def what_is_missing_is_not_found():
    t = table()
    refused(lambda: t.get_entity("p", "r"), 404, "ResourceNotFound", ResourceNotFoundError)
    refused(lambda: t.update_entity(entity("r")), 404, "ResourceNotFound", ResourceNotFoundError)
    tag = "W/\"datetime'2020-07-24T14%3A34%3A48.4767Z'\""
    refused(
        lambda: t.update_entity(entity("r"), etag=tag, match_condition=MatchConditions.IfNotModified),
        404,
        "ResourceNotFound",
        ResourceNotFoundError,
    )
    t.delete_entity("p", "r")


@check
def updates_merge_or_replace():
    t = table()
    t.create_entity(entity("r", a=1, b=2))
    t.update_entity(entity("r", b=3, c=4), mode=UpdateMode.MERGE)
    got = t.get_entity("p", "r")
    same((got["a"], got["b"], got["c"]), (1, 3, 4))
    t.update_entity(entity("r", d=5), mode=UpdateMode.REPLACE)
    same(sorted(k for k in t.get_entity("p", "r")), ["PartitionKey", "RowKey", "d"])
    t.upsert_entity(entity("r", e=6), mode=UpdateMode.MERGE)
    same(sorted(k for k in t.get_entity("p", "r")), ["PartitionKey", "RowKey", "d", "e"])
    t.upsert_entity(entity("r", e="text"), mode=UpdateMode.REPLACE)
    same(t.get_entity("p", "r")["e"], "text")
    t.upsert_entity(entity("new", a=1), mode=UpdateMode.MERGE)
    t.upsert_entity(entity("newer", a=1), mode=UpdateMode.REPLACE)
    same(rows(t.list_entities()), ["new", "newer", "r"])


@check
def a_tag_guards_an_update():
    t = table()
    t.create_entity(entity("r", n=1))
    first = t.get_entity("p", "r")
    same(first.metadata["etag"], t.get_entity("p", "r").metadata["etag"])
    first["n"] = 2
    t.update_entity(first, mode=UpdateMode.REPLACE, match_condition=MatchConditions.IfNotModified)
    assert t.get_entity("p", "r").metadata["etag"] != first.metadata["etag"]
    stale = {"etag": first.metadata["etag"], "match_condition": MatchConditions.IfNotModified}
    for call in (
        lambda: t.update_entity(first, mode=UpdateMode.MERGE, **stale),
        lambda: t.update_entity(first, mode=UpdateMode.REPLACE, **stale),
        lambda: t.delete_entity("p", "r", **stale),
    ):
        refused(call, 412, "UpdateConditionNotSatisfied", ResourceModifiedError)
    t.delete_entity(t.get_entity("p", "r"), match_condition=MatchConditions.IfNotModified)


@check
def racing_increments_lose_nothing():
    t = table()
    t.create_entity(entity("r", n=0))
    lost = []

    def increment():
        for _ in range(5):
            while True:
                got = t.get_entity("p", "r")
                got["n"] += 1
                try:
                    t.update_entity(got, mode=UpdateMode.REPLACE, match_condition=MatchConditions.IfNotModified)
                    break
                except ResourceModifiedError:
                    lost.append(1)

    threads = [threading.Thread(target=increment) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same(t.get_entity("p", "r")["n"], 40)


@check
def a_transaction_does_all():
    t = table()
    for row in ("u", "m", "d"):
        t.create_entity(entity(row, a=1, b=1))
    done = t.submit_transaction(
        [
            ("create", entity("c", a=2)),
            ("update", entity("u", a=2), {"mode": "replace"}),
            ("update", entity("m", a=2), {"mode": "merge"}),
            ("upsert", entity("x", a=2), {"mode": "replace"}),
            ("upsert", entity("y", a=2), {"mode": "merge"}),
            ("delete", entity("d")),
        ]
    )
    same(len(done), 6)
    assert all(one["etag"].startswith("W/") for one in done[:5]), done
    got = {e["RowKey"]: (e.get("a"), e.get("b")) for e in t.list_entities()}
    same(got, {"c": (2, None), "m": (2, 1), "u": (2, None), "x": (2, None), "y": (2, None)})
    same(done[0]["etag"], t.get_entity("p", "c").metadata["etag"])


@check
def a_transaction_fails_as_a_whole_and_tells_the_index():
    t = table()
    t.create_entity(entity("there", a=1))
    operations = [("create", entity("b0")), ("upsert", entity("b1")), ("create", entity("there")), ("create", entity("b3"))]
    error = refused(lambda: t.submit_transaction(operations), 409, "EntityAlreadyExists", TableTransactionError)
    same(error.index, 2)
    same(rows(t.list_entities()), ["there"])
    error = refused(lambda: t.submit_transaction([("create", entity("b0")), ("update", entity("none"))]), 404, "ResourceNotFound", TableTransactionError)
    same(error.index, 1)
    stale = {"etag": "W/\"datetime'2020-07-24T14%3A34%3A48.4767Z'\"", "match_condition": MatchConditions.IfNotModified}
    error = refused(lambda: t.submit_transaction([("create", entity("b0")), ("delete", entity("there"), stale)]), 412, "UpdateConditionNotSatisfied", TableTransactionError)
    same(error.index, 1)
    same(rows(t.list_entities()), ["there"])


@check
def a_transaction_names_a_row_once():
    t = table()
    error = refused(lambda: t.submit_transaction([("create", entity("a")), ("upsert", entity("a"))]), 400, "InvalidDuplicateRow", TableTransactionError)
    same(error.index, 1)


@check
def a_transaction_has_at_most_100_operations():
    t = table()
    same(len(t.submit_transaction([("upsert", entity(f"{n:03}")) for n in range(100)])), 100)
    try:
        t.submit_transaction([("upsert", entity(f"x{n:03}")) for n in range(101)])
    except HttpResponseError as error:
        same(error.status_code, 400)
    else:
        raise AssertionError("101 operations were done")
    same(len(list(t.list_entities())), 100)


@check
def an_empty_transaction_is_empty():
    same(list(table().submit_transaction([])), [])


@check
def a_transaction_of_a_missing_table_fails():
    t = SERVICE.get_table_client("nosuchtable")
    refused(lambda: t.submit_transaction([("create", entity("a"))]), 404, "TableNotFound")


@check
def pages_continue_from_their_token():
    t = table()
    fill(t, 25)
    pages = t.query_entities("PartitionKey eq 'p'", results_per_page=10).by_page()
    first = rows(next(pages))
    token = pages.continuation_token
    same(first, [f"{n:05}" for n in range(10)])
    other = TableClient.from_connection_string(CONNECTION, t.table_name, **OPTIONS)
    rest = [rows(page) for page in other.query_entities("PartitionKey eq 'p'", results_per_page=10).by_page(token)]
    same([r for page in rest for r in page], [f"{n:05}" for n in range(10, 25)])
    same(max(len(page) for page in rest), 10)


@check
def a_page_has_at_most_1000_entities():
    t = table()
    fill(t, 1100)
    sizes = [len(list(page)) for page in t.list_entities().by_page()]
    same((sum(sizes), max(sizes)), (1100, 1000))


@check
def entities_come_in_the_order_of_their_keys():
    t = table()
    keys = ["", "0001", "111", "2", "B", "a", "b", "ä", "\ue000", "😀"]
    for key in reversed(keys):
        t.create_entity(entity("x", key))
        t.create_entity(entity("a", key))
    got = [(e["PartitionKey"], e["RowKey"]) for e in t.list_entities()]
    utf16 = sorted(keys, key=lambda key: key.encode("utf-16-be"))
    same(got, [(key, row) for key in utf16 for row in ("a", "x")])
    got = [(e["PartitionKey"], e["RowKey"]) for page in t.list_entities(results_per_page=1).by_page() for e in page]
    same(got, [(key, row) for key in utf16 for row in ("a", "x")])


@check
def filters_select():
    t = table()
    t.create_entity(entity("1", i=5, s="Smith", b=True, d=1.5, when=datetime.datetime(2008, 7, 10, tzinfo=UTC)))
    t.create_entity(entity("2", i=7, s="it's", b=False, d=2.0, g=uuid.UUID("a455c695-df98-5678-aaaa-81d3367e5a34")))
    t.create_entity(entity("3", big=EntityProperty(2**40, EdmType.INT64), x=b"\x01\xff", s=""))
    t.create_entity(entity("1", "q", i=5))
    for text, expected in (
        ("i eq 5", ["1", "1"]),
        ("i gt 5", ["2"]),
        ("i ge 5 and i lt 7", ["1", "1"]),
        ("i ne 5", ["2"]),
        ("s eq 'it''s'", ["2"]),
        ("s ge 'S' and s lt 'T'", ["1"]),
        ("s eq ''", ["3"]),
        ("b eq true", ["1"]),
        ("b", ["1"]),
        ("not b", ["2", "3", "1"]),
        ("d eq 1.5 or d eq 2.0", ["1", "2"]),
        ("when ge datetime'2008-07-10T00:00:00Z'", ["1"]),
        ("g eq guid'a455c695-df98-5678-aaaa-81d3367e5a34'", ["2"]),
        ("x eq X'01ff'", ["3"]),
        ("x eq binary'01ff'", ["3"]),
        (f"big eq {2**40}L", ["3"]),
        ("not (i eq 5)", ["2", "3"]),
        ("i eq 5 or i eq 7 and b eq true", ["1", "1"]),
        ("(i eq 5 or i eq 7) and b eq false", ["2"]),
        ("5 eq i", ["1", "1"]),
        ("PartitionKey eq 'q'", ["1"]),
        ("PartitionKey gt 'p'", ["1"]),
        ("PartitionKey eq 'p' and RowKey gt '1'", ["2", "3"]),
        ("RowKey eq '1'", ["1", "1"]),
        ("PartitionKey eq 'p' or PartitionKey eq 'q'", ["1", "2", "3", "1"]),
        ("nothing eq 1", []),
        ("not (nothing ne '')", ["1", "2", "3", "1"]),
        ("Timestamp gt datetime'2020-01-01T00:00:00Z'", ["1", "2", "3", "1"]),
    ):
        got = rows(t.query_entities(text))
        assert got == expected, f"{text}: expected {expected}, got {got}"
    parameters = {"s": "it's", "b": False, "i": 7}
    same(rows(t.query_entities("s eq @s and b eq @b and i eq @i", parameters=parameters)), ["2"])


@check
def literals_widen_to_the_property():
    t = table()
    t.create_entity(entity("1", big=EntityProperty(12, EdmType.INT64), d=12.0, i=12))
    same(rows(t.query_entities("big eq 12")), ["1"])
    same(rows(t.query_entities("d eq 12")), ["1"])
    same(rows(t.query_entities("i eq 12L")), [])


@check
def a_wrong_filter_is_refused():
    t = table()
    t.create_entity(entity("r"))
    error = refused(lambda: list(t.query_entities("aaa bbb ccc")), 400, "InvalidInput")
    assert "Syntax error" in str(error), str(error)


@check
def select_and_top_narrow():
    t = table()
    fill(t, 20, s="x")
    got = list(t.query_entities("n lt 5", select=["n", "RowKey"]))
    same([sorted(e) for e in got], [["RowKey", "n"]] * 5)
    page = next(t.list_entities(results_per_page=7).by_page())
    same(len(list(page)), 7)
    same(sorted(t.get_entity("p", "00001", select=["s"])), ["s"])


@check
def a_selected_property_that_is_missing_is_null():
    t = table()
    t.create_entity(entity("r", a=1))
    assert t.get_entity("p", "r", select=["a", "zz"]).get("zz") is None


@check
def properties_have_limits():
    t = table()
    t.create_entity(entity("most", **{f"p{n}": n for n in range(252)}))
    refused(lambda: t.create_entity(entity("more", **{f"p{n}": n for n in range(253)})), 400, "TooManyProperties")
    refused(lambda: t.create_entity(entity("long", **{"a" * 256: 1})), 400, "PropertyNameTooLong")
    refused(lambda: t.create_entity(entity("name", **{"a-b": 1})), 400, "PropertyNameInvalid")
    t.create_entity(entity("text", s="x" * 32768))
    refused(lambda: t.create_entity(entity("value", s="x" * 32769)), 400, "PropertyValueTooLarge")
    refused(lambda: t.create_entity(entity("bytes", s=b"x" * 65537)), 400, "PropertyValueTooLarge")
    refused(lambda: t.create_entity(entity("large", **{f"p{n}": "x" * 32000 for n in range(17)})), 400, "EntityTooLarge")


def fixed(expiry_hours=1):
    return datetime.datetime.now(UTC) + datetime.timedelta(hours=expiry_hours)


def by_sas(t, sas):
    return TableClient(ENDPOINT, t.table_name, credential=AzureSasCredential(sas), **OPTIONS)


def credential():
    return AzureNamedKeyCredential(ACCOUNT, KEY)


@check
def a_table_sas_permits_what_it_says():
    t = table()
    t.create_entity(entity("r"))
    reader = by_sas(t, generate_table_sas(credential(), t.table_name, permission=TableSasPermissions(read=True), expiry=fixed()))
    same(rows(reader.list_entities()), ["r"])
    same(reader.get_entity("p", "r")["RowKey"], "r")
    refused(lambda: reader.create_entity(entity("s")), 403, "AuthorizationPermissionMismatch")
    refused(lambda: reader.delete_entity("p", "r"), 403, "AuthorizationPermissionMismatch")
    writer = by_sas(t, generate_table_sas(credential(), t.table_name, permission=TableSasPermissions(add=True, update=True), expiry=fixed()))
    writer.create_entity(entity("s"))
    writer.upsert_entity(entity("u"))
    writer.submit_transaction([("create", entity("v")), ("update", entity("s", a=1))])
    refused(lambda: list(writer.list_entities()), 403, "AuthorizationPermissionMismatch")
    other = by_sas(table(), generate_table_sas(credential(), t.table_name, permission=TableSasPermissions(read=True), expiry=fixed()))
    try:
        list(other.list_entities())
    except HttpResponseError as error:
        # No recording shows whether the code is AuthenticationFailed or AuthorizationFailure.
        same(error.status_code, 403)
    else:
        raise AssertionError("the signature of another table was taken")


@check
def a_sas_ends():
    t = table()
    late = by_sas(t, generate_table_sas(credential(), t.table_name, permission=TableSasPermissions(read=True), expiry=fixed(-1)))
    refused(lambda: list(late.list_entities()), 403, "AuthenticationFailed", ClientAuthenticationError)


@check
def a_table_sas_has_a_range_of_keys():
    t = table()
    for partition in "abc":
        fill(t, 3, partition)
    sas = generate_table_sas(
        credential(),
        t.table_name,
        permission=TableSasPermissions(read=True, add=True),
        expiry=fixed(),
        start_pk="b",
        start_rk="00001",
        end_pk="b",
        end_rk="00009",
    )
    inside = by_sas(t, sas)
    same([(e["PartitionKey"], e["RowKey"]) for e in inside.list_entities()], [("b", "00001"), ("b", "00002")])
    inside.create_entity(entity("00005", "b"))
    refused(lambda: inside.create_entity(entity("00005", "c")), 403, "AuthorizationFailure")


@check
def an_account_sas_permits_what_it_says():
    t = table()
    t.create_entity(entity("r"))
    sas = generate_account_sas(
        credential(), ResourceTypes(service=True, container=True, object=True), AccountSasPermissions(read=True, list=True, add=True), fixed()
    )
    service = TableServiceClient(ENDPOINT, credential=AzureSasCredential(sas), **OPTIONS)
    assert t.table_name in [one.name for one in service.list_tables()]
    client = service.get_table_client(t.table_name)
    same(rows(client.list_entities()), ["r"])
    client.create_entity(entity("s"))
    refused(lambda: client.delete_entity("p", "r"), 403, "AuthorizationPermissionMismatch")


@check
def an_account_sas_names_kinds_of_resources():
    t = table()
    sas = generate_account_sas(credential(), ResourceTypes(object=True), AccountSasPermissions(read=True, list=True), fixed())
    service = TableServiceClient(ENDPOINT, credential=AzureSasCredential(sas), **OPTIONS)
    same(rows(service.get_table_client(t.table_name).list_entities()), [])
    refused(lambda: list(service.list_tables()), 403, "AuthorizationResourceTypeMismatch")


@check
def a_stored_policy_rules_its_sas():
    t = table()
    t.create_entity(entity("r"))
    policy = TableAccessPolicy(start=fixed(-1), expiry=fixed(), permission="r")
    t.set_table_access_policy({"reader": policy, "bare": None})
    got = t.get_table_access_policy()
    same(sorted(got), ["bare", "reader"])
    same(got["reader"].permission, "r")
    client = by_sas(t, generate_table_sas(credential(), t.table_name, policy_id="reader"))
    same(rows(client.list_entities()), ["r"])
    refused(lambda: client.create_entity(entity("s")), 403, "AuthorizationPermissionMismatch")
    t.set_table_access_policy({})
    same(t.get_table_access_policy(), {})
    refused(lambda: list(client.list_entities()), 403, "AuthenticationFailed", ClientAuthenticationError)


@check
def properties_of_the_service_are_kept():
    days = TableRetentionPolicy(enabled=True, days=5)
    SERVICE.set_service_properties(
        analytics_logging=TableAnalyticsLogging(read=True, write=True, delete=True, retention_policy=days),
        hour_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=days),
        minute_metrics=TableMetrics(enabled=False),
        cors=[TableCorsRule(["https://example.org"], ["GET", "PUT"], allowed_headers=["x-a"], exposed_headers=["x-b"], max_age_in_seconds=60)],
    )
    got = SERVICE.get_service_properties()
    same((got["analytics_logging"].read, got["analytics_logging"].retention_policy.days), (True, 5))
    same((got["hour_metrics"].enabled, got["hour_metrics"].include_apis), (True, True))
    same(got["minute_metrics"].enabled, False)
    rule = got["cors"][0]
    same((rule.allowed_origins, rule.allowed_methods, rule.max_age_in_seconds), (["https://example.org"], ["GET", "PUT"], 60))
    SERVICE.set_service_properties(cors=[])
    got = SERVICE.get_service_properties()
    same((len(got["cors"]), got["hour_metrics"].enabled), (0, True))


@check
def a_wrong_key_is_refused():
    wrong = TableServiceClient(ENDPOINT, credential=AzureNamedKeyCredential(ACCOUNT, "d3Jvbmc="), **OPTIONS)
    refused(lambda: list(wrong.list_tables()), 403, "AuthenticationFailed", ClientAuthenticationError)


@check
def answers_say_who_asked():
    seen = {}
    t = table()
    t.create_entity(entity("r"), raw_response_hook=lambda response: seen.update(response.http_response.headers))
    lower = {name.lower(): value for name, value in seen.items()}
    for name in ("x-ms-request-id", "x-ms-version", "x-ms-client-request-id", "date", "etag", "location", "x-content-type-options"):
        assert lower.get(name), f"{name} is missing: {sorted(lower)}"
    assert "preference-applied" not in lower, lower["preference-applied"]


@check
def retries_go_through_throttling():
    """More entities a second than a partition serves: the library waits and tries again, and all arrive."""
    if not THROTTLED:
        return
    t = table()
    busy = []
    waiting = []

    def look(response):
        if response.http_response.status_code == 503:
            busy.append(response.http_response.headers.get("Retry-After"))

    def write(writer):
        client = TableClient.from_connection_string(CONNECTION, t.table_name, **OPTIONS)
        for batch in range(12):
            operations = [("upsert", entity(f"{writer}-{batch}-{n}")) for n in range(100)]
            client.submit_transaction(operations, raw_response_hook=look)
            waiting.append(1)

    start = time.monotonic()
    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    same((len(waiting), len(list(t.list_entities(select=["RowKey"])))), (48, 4800))
    assert time.monotonic() - start > 2, "4,800 entities of one partition met no limit"


def main():
    known = {}
    if os.environ.get("TABLES_KNOWN"):
        with open(os.environ["TABLES_KNOWN"], encoding="utf-8") as lines:
            for line in lines:
                if line.strip() and not line.startswith("#"):
                    name, _, why = line.strip().partition(": ")
                    known[name] = why
    counts = {"passed": 0, "failed": 0, "known": 0}
    for f in CHECKS:
        name = f.__name__
        if THROTTLED and "throttling" not in name:
            continue
        try:
            f()
            counts["passed"] += 1
            print(f"ok    {name}", flush=True)
        except Exception as error:  # every failure of a check is told
            if name in known:
                counts["known"] += 1
                print(f"known {name}: {known[name]}", flush=True)
                continue
            counts["failed"] += 1
            text = str(error).split("\n")[0]
            print(f"FAIL  {name}: {type(error).__name__}: {text}", flush=True)
            if os.environ.get("TABLES_TRACE"):
                traceback.print_exc()
    print("python: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
    return 1 if counts["failed"] else 0


sys.exit(main())
