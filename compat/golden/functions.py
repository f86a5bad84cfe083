#!/usr/bin/env python3
"""Asks a running Apache Cassandra what its built-in functions give, for `crates/types/fixtures/functions.json`.

    functions.py [PORT] > ../../crates/types/fixtures/functions.json

Makes a keyspace `ht`. In the file `tables` are the tables' columns and rows, in hexadecimal, and a case is a selection over
some of the rows: name, type and values of its result, or the error. Calls whose result changes with time are left out.
"""

import json
import sys

from dump import Connection

SELECTIONS = """
minTimeuuid(ts)
min_timeuuid(ts)
maxTimeuuid(ts)
mintimeuuid(tu)
mintimeuuid('2020-01-01')
toDate(tu)
to_date(ts)
to_date(d)
toTimestamp(d)
to_timestamp(tu)
to_timestamp(ts)
toUnixTimestamp(d)
to_unix_timestamp(ts)
to_unix_timestamp(tu)
dateOf(tu)
unixTimestampOf(tu)
date_of(tu)
abs(de)
abs(n)
abs(ty)
abs(do)
exp(n)
exp(de)
exp(do)
exp(f)
exp(va)
exp(bi)
log(do)
log(de)
log(va)
log(n)
log10(de)
log10(do)
round(de)
round(do)
round(f)
round(n)
sqrt(do)
map_keys(m)
map_values(m)
collection_count(l)
collection_count(m)
collection_count(se)
collection_min(l)
collection_max(se)
collection_min(m)
collection_sum(l)
collection_avg(l)
collection_avg(ld)
collection_sum(se)
collection_sum(m)
collection_count(n)
map_keys(l)
mask_null(t)
mask_default(t)
mask_default(a)
mask_default(n)
mask_default(bi)
mask_default(bl)
mask_default(bo)
mask_default(d)
mask_default(de)
mask_default(do)
mask_default(du)
mask_default(f)
mask_default(i)
mask_default(s)
mask_default(ti)
mask_default(ts)
mask_default(tu)
mask_default(ty)
mask_default(u)
mask_default(va)
mask_default(l)
mask_default(se)
mask_default(m)
mask_default(tup)
mask_default(ad)
mask_default(ve)
mask_replace(n, 5)
mask_replace(t, 'zz')
mask_replace(l, [1])
mask_inner(t, 1, 1)
mask_inner(t, 1, null)
mask_inner(t, null, 2)
mask_inner(t, null, null)
mask_inner(t, -1, 1)
mask_inner(t, 9, 9)
mask_inner(t, 1, 1, '#')
mask_inner(t, 1, 1, '##')
mask_inner(n, 1, 1)
mask_inner(t)
mask_inner(t,1)
mask_inner(a,1,1)
mask_outer(t, 1, 1)
mask_outer(t, 1, null)
mask_outer(t, null, 2)
mask_outer(t, null, null)
mask_outer(t, 9, 9)
mask_outer(t, 1, 1, '#')
mask_hash(t)
mask_hash(n)
mask_hash(t, 'SHA-512')
mask_hash(t, 'md5')
mask_hash(t, 'nope')
toJson(l)
to_json(m)
to_json(ve)
tojson(tup)
fromJson('1')
from_json('1')
similarity_cosine(ve, [1,0,0])
similarity_euclidean(ve, [1,0,0])
similarity_dot_product(ve, [1,0,0])
similarity_cosine([1,2],[3,4])
similarity_cosine(ve, ve)
similarity_cosine(ve, [0,0,0])
similarity_cosine(l, l)
similarity_cosine(ve)
format_bytes(bi)
format_time(bi)
format_bytes(n)
intAsBlob(n)
int_as_blob(n)
blobAsInt(bl)
blob_as_int(bl)
blob_as_int(int_as_blob(n))
tinyintAsBlob(ty)
textAsBlob(t)
varcharAsBlob(t)
varchar_as_blob(t)
blob_as_varchar(bl)
asciiAsBlob(a)
asciiAsBlob(t)
textAsBlob(a)
blobAsBlob(bl)
blob_as_blob(bl)
booleanAsBlob(bo)
durationAsBlob(du)
duration_as_blob(du)
counterAsBlob(bi)
counter_as_blob(bi)
blobAsCounter(bl)
emptyAsBlob(t)
listAsBlob(l)
timeuuidAsBlob(tu)
inetAsBlob(i)
count(n)
count(*)
count(1)
min(t)
max(l)
max(tup)
max(ad)
sum(de)
avg(de)
sum(n)
avg(n)
avg(s)
avg(va)
avg(f)
avg(bi)
sum(ty)
min(bo)
max(du)
min(bl)
system.min(n)
vector_x(n)
length(t)
concat(t,t)
greatest(n,n)
_add(n,n)
system._add(n,n)
cast_as_text(n)
system.cast_as_text(n)
"castAsText"(n)
map_entries(m)
last(n)
first(n)
uuid(n)
collection_min(lt)
collection_sum(lt)
n + 1
n + bi
n + do
n + f
f + do
f + bi
bi + f
n + de
n + va
ty + s
ty + ty
ty + 1
s + 1
n / 2
n / 0
do / 0
f / 0
de / 3
de / 0
va / 0
n % 3
do % 2
de % 3
-n
-do
-de
-ty
-t
de * de
de + 1.5
n + 1.5
1 + 1
(int)1 + 1
1.0 + n
n + 3000000000
bi * bi
n * n
ts + 1d
ts + du
d + 1d
d - 1mo
d + 1h
ts - 2h
ti + 1h
ts + n
d + n
t + t
t + 'x'
a + t
du + du
n + t
n + null
va + do
va + f
de + f
de + do
bi + va
va % n
n - bi
de / 7
de / 1.1
(n + 1) * 2
n + n * 2
n - n - n
l + l
avg(n) + 1
sum(n + 1)
n + ?
ty / 0
bi / 0
bi + de
(tinyint)127 + (tinyint)1
(smallint)32767 + (smallint)1
(int)2147483647 + 1
(bigint)9223372036854775807 + 1
-(int)-2147483648
(decimal)1 / (decimal)3
(decimal)1.00 / (decimal)4
(decimal)10 / (decimal)3.0
(decimal)1e30 / (decimal)7
(decimal)22 / (decimal)7
(decimal)100 / 7
(double)1 / 3
(float)1 / 3
(int)-7 / 2
(int)-7 % 3
(double)-7.5 % 2
(decimal)-7.5 % 2
(varint)-7 / 2
(varint)-7 % 2
(date)'2020-01-31' + 1mo
(timestamp)'2020-01-31' + 1mo2d3h
(timestamp)'2020-01-31' - 1mo2d3h
(date)'2020-01-01' + 1ns
(timestamp)'2020-01-01' + 1ns
1 / 0
n / null
count(*) + 1
abs(n - 10)
n + abs(n)
-(n + 1)
- n
n - -1
cast(n as double) / 2
max(n) - min(n)
ad.n + 1
ve + ve
bo + bo
bl + bl
u + 1
counter + 1
n + s
s + bi
ty + bi
ty + f
ty + do
ty + va
ty + de
s + f
n % do
bi % f
map_keys()
map_values(m,m)
collection_count()
collection_min()
collection_sum(l,l)
collection_avg()
mask_null()
mask_default()
mask_replace(n)
mask_inner()
mask_outer()
mask_hash()
mask_hash(t,t,t)
tojson()
tojson(n,n)
min()
max()
count()
sum(n,n)
avg()
similarity_euclidean()
map_keys(null)
map_keys(?)
collection_count(?)
collection_count([1,2])
collection_sum([1,2])
collection_min({1,2})
map_keys({'a':1})
map_keys((map<text,int>)?)
mask_default(?)
mask_default('a')
mask_default(1)
mask_default(null)
mask_replace(n, 'x')
mask_replace(n, t)
mask_replace(n, bi)
mask_replace(n, ?)
mask_replace(n, null)
mask_inner('abc', 1, 1)
mask_inner(t, 'x', 1)
mask_inner(t, n, s)
mask_inner(t, 1, 1, null)
mask_inner(t, 1, 1, '')
mask_hash(t, null)
mask_hash(t, 'SHA-1')
mask_hash(t, 'sha-256')
mask_hash(t, 'SHA-224')
mask_hash(t, 'SHA-384')
mask_hash(t, 'MD2')
mask_hash(t, n)
tojson(1)
tojson('a')
tojson(?)
min(1)
max(?)
count(?)
abs(?)
abs('a')
abs(null)
similarity_cosine(ve, ?)
similarity_cosine(?, ?)
similarity_cosine(ve, null)
similarity_cosine(ve, [1,2])
similarity_cosine(ve, 1)
similarity_cosine([1,2],[1,2,3])
similarity_euclidean([0,0],[0,0])
similarity_dot_product([0,0],[0,0])
cast(1 as text)
cast('a' as int)
cast(? as int)
cast(null as int)
cast(n as list<int>)
cast(n as addr)
cast(1.5 as int)
intasblob(?)
intasblob(null)
intasblob('a')
intasblob(3000000000)
textasblob('x')
blobasint(null)
todate(?)
todate(null)
todate('2020-01-01')
mintimeuuid(null)
mintimeuuid(1)
todate(1)
totimestamp('2020-01-01')
tounixtimestamp('2020-01-01')
1 + 'a'
'a' + 'b'
'a' + 1
t + ?
n + ? + 1
(int)? + 1
? + ?
-?
-'a'
-(1)
null + null
1.5 + 'a'
[1] + [2]
sum(t)
sum(l)
avg(bo)
min(m)
sum(?)
max(tu)
uuid(1,2)
system.nothing(n)
nothing()
ht.nothing(n)
nope.nothing(n)
cast(count(*) as text)
sum(cast(n as bigint))
count(n + 1)
max(max(n))
toJson(null)
cast(n as text) + 'x'
abs(abs(n))
log(0)
log10(1000)
exp(1)
round(2.5)
round(1)
collection_count(fl)
collection_avg(fl)
collection_max(ml)
map_values(ml)
map_keys(ml)
to_timestamp(1d)
mask_default(lt)
mask_default(ml)
mask_null(ve)
mask_hash(ve)
mask_hash(l)
vector_as_blob(ve)
tuple_as_blob(tup)
blobasvarint(0x)
blobasint(0x)
blobastext(0xff)
blobassmallint(0x)
min((int)null)
l[0]
m['x']
ad.street
se['a']
m['x'..'y']
(decimal)1 / (decimal)3e40
(decimal)1e-40 / (decimal)3
(decimal)100 / (decimal)1
(decimal)1e50 / (decimal)3
(decimal)1.23456789012345678901234567890123456789012345 / (decimal)3
(decimal)1 / (decimal)1e20
(decimal)2e-1100 / (decimal)3
(decimal)1234567890123456789012345678901234567890 / (decimal)7
(decimal)5 / (decimal)3e5
(decimal)5e10 / (decimal)3
(decimal)0 / (decimal)3
(decimal)7 % (decimal)0
(double)7 % 0
(varint)7 % 0
(int)7 % 0
(decimal)1e-1 % (decimal)3
(decimal)10 % (decimal)1e-2
(decimal)1e5 % (decimal)3
""".strip().split("\n")

OF_NULLS = """
mask_null(t)|mask_default(t)|mask_default(n)|mask_replace(n,5)|mask_inner(t,1,1)|mask_hash(t)|tojson(t)|tojson(l)|abs(n)|n+1|-(n)
cast(n as text)|collection_count(l)|map_keys(m)|textasblob(t)|todate(ts)|similarity_cosine(ve,[1,2,3])|mask_default(l)
mask_default(ad)|t + 'x'|ts + 1d|mask_outer(t,1,1)|mask_default(tup)|collection_count(se)|sum(n)|min(n)|count(n)|blobasint(bl)
""".strip().replace("\n", "|").split("|")

CAST_FROM = "a bi bl bo d de do du f i n s t ti ts tu ty u va l tup ad ve".split()
CAST_TO = """ascii bigint blob boolean date decimal double duration float inet int smallint text time timestamp timeuuid tinyint
uuid varint counter varchar""".split()

OF_NUMBERS = """
abs(v)|abs(d)|round(d)|round(f)|round(de)|log(v)|log10(v)|exp(v)|log(d)|log10(d)|exp(d)|exp(f)|log(f)|log10(f)|abs(f)
cast(d as int)|cast(d as bigint)|cast(d as smallint)|cast(d as tinyint)|cast(f as int)|cast(f as bigint)|cast(d as varint)
cast(d as decimal)|cast(f as decimal)|cast(f as double)|cast(f as varint)|cast(de as int)|cast(de as double)|cast(de as float)
cast(d as float)|cast(d as text)|cast(f as text)|cast(de as text)|cast(v as double)|cast(d as ascii)|-d|d % 2|d * 2
log(de)|log10(de)|exp(de)|de * de|de / v|de % 7|v + de|v % 4|v / 3|f / v|d / v
""".strip().replace("\n", "|").split("|")

OF_COUNTERS = """c+1|sum(c)|avg(c)|max(c)|cast(c as int)|counter_as_blob(c)|counterasblob(c)|abs(c)|-c|mask_default(c)|to_json(c)
c*c|count(c)|exp(c)|cast(c as text)|bigint_as_blob(c)|c+c""".replace("\n", "|").split("|")

SETUP = """
CREATE KEYSPACE IF NOT EXISTS ht WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
USE ht
CREATE TYPE IF NOT EXISTS addr (street text, n int)
DROP TABLE IF EXISTS ft
DROP TABLE IF EXISTS ne
DROP TABLE IF EXISTS ag
DROP TABLE IF EXISTS ct
CREATE TABLE ft (k int PRIMARY KEY, a ascii, bi bigint, bl blob, bo boolean, d date, de decimal, do double, du duration, f float, \
i inet, n int, s smallint, t text, ti time, ts timestamp, tu timeuuid, ty tinyint, u uuid, va varint, l list<int>, se set<text>, \
m map<text,int>, tup tuple<int,text>, ad addr, ve vector<float,3>, fl frozen<list<int>>, ld list<double>, \
ml map<int,frozen<list<int>>>, lt list<text>)
INSERT INTO ft (k,a,bi,bl,bo,d,de,do,du,f,i,n,s,t,ti,ts,tu,ty,u,va,l,se,m,tup,ad,ve,fl,ld,ml,lt) VALUES (1,'asc',123456789012,\
0x0a0b,true,'2020-02-29',-12.50,2.5,1y2mo3d4h,1.5,'1.2.3.4',7,-3,'hello','01:02:03.5','2020-02-29T01:02:03.004Z',\
50554d6e-29bb-11e5-b345-feff819cdc9f,5,123e4567-e89b-42d3-a456-426614174000,12345678901234567890,[3,1,2],{'a','b'},\
{'x':1,'y':2},(1,'z'),{street:'q',n:1},[1,2,3],[4,5],[1.5,2.5],{1:[1,2]},['a','b'])
INSERT INTO ft (k) VALUES (2)
CREATE TABLE ne (k int PRIMARY KEY, v int, w text, d double, f float, de decimal)
CREATE TABLE ag (p int, k int, bi bigint, de decimal, do double, f float, n int, s smallint, t text, ty tinyint, va varint, \
l list<int>, PRIMARY KEY (p, k))
INSERT INTO ag (p,k,bi,de,do,f,n,s,t,ty,va) VALUES (1,1,9223372036854775807,1.0,1.5,1.5,2147483647,32767,'b',127,10)
INSERT INTO ag (p,k,bi,de,do,f,n,s,t,ty,va) VALUES (1,2,9223372036854775807,2,0.1,0.1,2147483647,32767,'a',127,3)
INSERT INTO ag (p,k,bi,de,do,f,n,s,t,ty,va) VALUES (1,3,1,2.55,1e308,3e38,5,1,'c',3,-7)
INSERT INTO ag (p,k) VALUES (1,4)
UPDATE ag SET l = [2147483647, 2147483647, 3] WHERE p = 1 AND k = 1
CREATE TABLE ct (k int PRIMARY KEY, c counter)
UPDATE ct SET c = c + 5 WHERE k = 1
""".strip().split("\n")

NUMBERS = [
    (-7, "-7.5", "-7.5"),
    (2, "2.5", "2.5"),
    (0, "-2.5", "-2.5"),
    (-2147483648, "0.5", "0.5"),
    (5, "1e20", "1e20"),
    (3, "NaN", "123456789.123456789"),
    (4, "-0.4", "1e-5"),
    (6, "100", "100"),
    (7, "0.001", "12345678901234567890"),
]

ROWS = {
    "ft": ["k = 1", "k = 2"],
    "ne": [f"k = {k}" for k in range(len(NUMBERS))],
    "ag": [f"p = 1 AND k = {k}" for k in (1, 2, 3, 4)],
    "ct": ["k = 1"],
}


def main():
    connection = Connection("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 19042)
    for statement in SETUP:
        connection.must(statement)
    for k, (v, d, de) in enumerate(NUMBERS):
        connection.must(f"INSERT INTO ne (k, v, d, f, de) VALUES ({k}, {v}, {d}, {d}, {de})")
    tables = {}
    for table, wheres in ROWS.items():
        described = connection.must(
            f"SELECT column_name, type FROM system_schema.columns WHERE keyspace_name = 'ht' AND table_name = '{table}'"
        )["rows"]
        columns = [[bytes.fromhex(cell).decode() for cell in row] for row in described]
        names = ", ".join(name for name, _ in columns)
        rows = [connection.must(f"SELECT {names} FROM {table} WHERE {where}")["rows"][0] for where in wheres]
        tables[table] = {"columns": columns, "rows": rows}
    cases = []

    def case(table, rows, selection):
        if table == "ag":
            where = f"p = 1 AND k IN ({', '.join(str(row + 1) for row in rows)})" if rows else "p = 9"
        else:
            where = ROWS[table][rows[0]]
        answer = connection.query(f"SELECT {selection} FROM {table} WHERE {where}")
        told = {"table": table, "rows": rows, "select": selection}
        if "code" in answer:
            told.update({key: answer[key] for key in ("code", "message", "function") if key in answer})
        else:
            told.update(name=answer["columns"][0]["name"], type=answer["columns"][0]["type"])
            told["values"] = [row[0] for row in answer["rows"]]
        cases.append(told)

    for selection in SELECTIONS:
        case("ft", [0], selection)
    for selection in OF_NULLS:
        case("ft", [1], selection)
    for column in CAST_FROM:
        for target in CAST_TO:
            case("ft", [0], f"cast({column} as {target})")
    for selection in OF_NUMBERS:
        for k in range(len(NUMBERS)):
            case("ne", [k], selection)
    for selection in OF_COUNTERS:
        case("ct", [0], selection)
    for column in "bi de do f n s ty va t".split():
        for function in "sum avg min max count".split():
            for rows in ([0, 1, 2, 3], [], [0, 1], [1, 2], [0, 2], [3]):
                case("ag", rows, f"{function}({column})")
    for row in (0, 1):
        for function in "sum avg min count".split():
            case("ag", [row], f"collection_{function}(l)")
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(table)}" for name, table in tables.items())
    answers = ",\n".join(json.dumps(told, ensure_ascii=False) for told in cases)
    print(f'{{"tables": {{\n{lines}\n}},\n"cases": [\n{answers}\n]}}')


if __name__ == "__main__":
    main()
