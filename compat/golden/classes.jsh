// Asks Cassandra's own classes what bytes, texts and JSON mean, for crates/types/fixtures/{values,texts,from_json,order}.json:
//
//     jshell --class-path "$(ls ../oracle/target/lib/*.jar | tr '\n' ':')" -R-Dout=../../crates/types/fixtures classes.jsh
//
// values: bytes of a type: whether they validate, else the error; as text (getString), CQL literal and JSON.
// texts, from_json: fromString and fromJSONObject: bytes, or the error.
// order: values of a type in its order, equal ones in one list.
// An error "java" is an exception that is Cassandra's own mistake.
import org.apache.cassandra.cql3.*;
import org.apache.cassandra.db.marshal.*;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.utils.*;
import java.nio.ByteBuffer;
import java.util.*;
import java.util.function.*;

Map<String, List<String>> files = new TreeMap<>();
String quote(String text) throws Exception { return new com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(text); }
String error(Throwable e) { String name = e.getClass().getSimpleName(); return name.equals("MarshalException") || name.equals("InvalidRequestException") ? e.getMessage() : "java"; }
String member(String name, java.util.concurrent.Callable<String> value) { try { return ", \"" + name + "\": " + quote(value.call()); } catch (Throwable e) { return ""; } }
void tell(String file, String entry) { files.computeIfAbsent(file, f -> new ArrayList<>()).add("{" + entry + "}"); }
String hex(ByteBuffer b) { return ByteBufferUtil.bytesToHex(b); }
ByteBuffer unhex(String h) { return ByteBufferUtil.hexToBytes(h); }
String hx(byte[] b) { return hex(ByteBuffer.wrap(b)); }

void v(String t, String... values) throws Exception {
  AbstractType<?> type = TypeParser.parse(t);
  for (String h : values) {
    String entry = "\"type\": " + quote(t) + ", \"bytes\": " + quote(h);
    try {
      type.validate(unhex(h));
      entry += member("cql", () -> type.toCQLString(unhex(h))) + member("text", () -> type.getString(unhex(h))) + member("json", () -> type.toJSONString(unhex(h), ProtocolVersion.V5));
    } catch (Throwable e) { entry += ", \"error\": " + quote(error(e)); }
    tell("values", entry);
  }
}

void s(String t, String... texts) throws Exception {
  AbstractType<?> type = TypeParser.parse(t);
  for (String text : texts) {
    String entry = "\"type\": " + quote(t) + ", \"text\": " + quote(text);
    try { entry += ", \"bytes\": " + quote(hex(type.fromString(text))); } catch (Throwable e) { entry += ", \"error\": " + quote(error(e)); }
    tell("texts", entry);
  }
}

void j(String t, String... texts) throws Exception {
  AbstractType<?> type = TypeParser.parse(t);
  for (String text : texts) {
    String entry = "\"type\": " + quote(t) + ", \"json\": " + quote(text);
    try {
      ByteBuffer b = type.fromJSONObject(JsonUtils.decodeJson(text)).bindAndGet(QueryOptions.DEFAULT);
      entry += ", \"bytes\": " + (b == null ? "null" : quote(hex(b)));
    } catch (Throwable e) { entry += ", \"error\": " + quote(error(e)); }
    tell("from_json", entry);
  }
}

void c(String t, List<String> values) throws Exception {
  AbstractType<?> type = TypeParser.parse(t);
  List<String> valid = new ArrayList<>();
  for (String h : new LinkedHashSet<>(values)) { try { type.validate(unhex(h)); valid.add(h); } catch (Throwable e) { } }
  Comparator<String> order = (a, b) -> type.compare(unhex(a), unhex(b));
  valid.sort(order);
  StringBuilder lists = new StringBuilder();
  for (int i = 0; i < valid.size(); i++) {
    if (i > 0) lists.append(order.compare(valid.get(i - 1), valid.get(i)) == 0 ? ", " : "], [");
    lists.append(quote(valid.get(i)));
  }
  tell("order", "\"type\": " + quote(t) + ", \"order\": [[" + lists + "]]");
}

v("AsciiType","","61","c3a9","00","22275c");
v("UTF8Type","","61","ff","c3a9","eda080","22275c0a01","7f","e280a8","00","c080","f4908080");
v("BytesType","","61");
v("BooleanType","","00","01","02","ff","0000");
v("ByteType","","00","ff","0000");
v("ShortType","","00","ffff","000000");
v("Int32Type","","00","ffffffff","0000000000");
v("LongType","","00","ffffffffffffffff");
v("CounterColumnType","","00","ffffffffffffffff");
v("IntegerType","","00","ffff","0080");
v("DecimalType","","00","00000000","000000020096","fffffff601","0000000a01","0000000701","0000000601","80000000ff","7fffffff01","00000000ff");
v("FloatType","","00","7fc00000","3f800000","3dcccccd","7f7fffff","00000001","4b189680","4b18967f","3a83126f","c2f6e979");
v("DoubleType","","00","7ff8000000000000","3ff0000000000000","3fb999999999999a","416312d000000000","0000000000000001","3f50624dd2f1a9fc","4340000000000000","44b52d02c7e14af6");
v("InetAddressType","","00","7f000001","00000000000000000000000000000001","00000000000000000000ffff01020304");
v("SimpleDateType","","00","80000000","00000000","ffffffff","7ff50559","802cc0a1","7ff506c6");
v("TimeType","","00","0000000000000000","00004e94914effff","00004e94914f0000","ffffffffffffffff");
v("TimestampType","","00","0000000000000000","ffffffffffffffff","0000e677d21fdbff","0000e677d21fdc00","ffffc77cede8cc00","7fffffffffffffff","8000000000000000");
v("UUIDType","","00","123e4567e89b42d3a456426614174000");
v("TimeUUIDType","","00","123e4567e89b42d3a456426614174000","50554d6e29bb11e5b345feff819cdc9f","50554d6e29bb11e50345feff819cdc9f");
v("DurationType","","00","000000","010203","020202","0000fc4e94914f0000","010100","000001","00000000","f0ffffffff0000","f1000000000000","ffffffffffffffffff0000","000080","0000");
v("EmptyType","","00");
v("ListType(Int32Type)","","00","00000000","0000000000","00000001","00000001ffffffff","0000000100000001","000000010000000400000005","00000001000000040000000500","ffffffff","0000000100000000","00000002000000040000000500000004");
v("SetType(Int32Type)","","00","00000000","0000000000","00000001","00000001ffffffff","0000000100000001","000000010000000400000005","00000001000000040000000500","ffffffff","000000010000000100");
v("MapType(Int32Type,UTF8Type)","","00","00000000","0000000000","00000001","00000001ffffffff","000000010000000400000005","0000000100000004000000050000000161","000000010000000400000005000000016100","0000000100000004000000050000000161ff","ffffffff","000000010000000400000005ffffffff","00000001000000040000000500000001ff","000000010000000100");
v("FrozenType(ListType(Int32Type))","000000010000000400000005","");
v("TupleType(Int32Type,UTF8Type)","","00","ffffffff","ffffffffffffffff","0000000400000001","00000004000000010000000161","0000000400000001000000016100","0000000400000001000000016100000000","00000001","000000010000000161","0000000400000001ff","00000004000000010000000161ffffffff","fffffffe00000000");
v("UserType(ks,61646472,737472656574:UTF8Type,4e:Int32Type)","","00","ffffffff","ffffffffffffffff","0000000161ffffffff","000000016100000004000000010000","00000001610000000400000001","0000000400000001","0000000161000000040000000100000000","0000000161000000040000","0000000161000000020000","00000001");
v("VectorType(FloatType,2)","","00","3f8000003f800000","3f8000003f80000000","3f800000");
v("VectorType(UTF8Type,2)","","00","01610162","0161","0161016200","0001ff","ff","0561");
v("VectorType(ShortType,2)","0200010200ff","010002000f");

s("TimestampType"," 2011-02-03","2011-02-03 ","2011-2-3","2011-02-03 04:05","2011-02-03T04:05","2011-02-03 4:05","2011-02-03 04:05:06.7","2011-02-03 04:05:06.1234567","2011-02-03 04:05.5","2011-02-03 04:05:06.","2011-02-03 04:05:06 UTC","2011-02-03 04:05:06UTC","2011-02-03 04:05:06 +0000","2011-02-03 04:05:06 +00:00","2011-02-03 04:05:06+00:00","2011-02-03 04:05:06+00","2011-02-03 04:05:06+0","2011-02-03 04:05:06+000000","2011-02-03 04:05:06 GMT+3","2011-02-03 04:05:06 UTC+03:00","2011-02-03 04:05:06 PST","2011-07-03 04:05:06 PST","2011-07-03 04:05:06 PDT","2011-02-03 04:05:06 EST","2011-02-03 04:05:06 CET","2011-02-03 04:05:06 Europe/Paris","2011-02-03 04:05:06 Pacific Standard Time","2011-02-03 04:05:06 Z","2011-02-03 04:05:06z","2011-02-03 04:05:06Z","2011-02-03Z","2011-02-03+0100","2011-02-03+01:00","2011-02-03 UTC","2011-02-03 +0100","2011-02-30","2011-02-29","2011-13-01","2011-02-03 24:00","2011-02-03 24:00:00","2011-02-03 23:60","2011-02-03 23:59:60","20110203","+12345-01-01","12345-01-01","-0001-01-01","0000-01-01","-1","+1","99999999999999999999","9223372036854775807","-9223372036854775808","2011-02-03 04:05:06,789","2011-02-03t04:05:06","2011-02-03  04:05","2011-02-03 04:05:06.789 +0000","2011-02-03 04:05:06.1234567890","2011-02-03 04:05:06+1","2011-02-03 04:05:06-08","2011-02-03 04:05:06+18:00","2011-02-03 04:05:06+1900","2011-02-03 04:05:06 utc","2011-02-03 04:05:06 America/Los_Angeles","999-01-01","+2011-01-01","0001-01-01","+0001-01-01","+10000-01-01","2011-02-03 04:05:06.999999999","1960-02-03 04:05:06.999999999","2011-02-03 04:05:06 UTC+3","2011-02-03 04:05:06 GMT","2011-02-03 04:05:06 GMT0","2011-02-03 04:05:06 UT","2011-02-03 04:05:06 CST","2011-02-03 04:05:06 JST","2011-02-03 04:05:06 MSK","2011-02-03 04:05:06 +03");
s("SimpleDateType","2011-2-3"," 2011-02-03","20110203","+12345-01-01","12345-01-01","-0001-01-01","0000-01-01","-5877641-06-23","+5881580-07-11","+5881580-07-12","-5877641-06-22","5","4294967296","-2147483648","2011-02-03Z","now","+2011-01-01","1","0","-2147483649","99999999999999","-99999-01-01","+1");
s("TimeType","1:2:3","01:02","01:02:03.1","01:02:03.1234567891","01:02:03.","-1","1","86400000000000","99999999999999999999","25:00:00","1:60:00","1:1:60","1:1:1 ","a:b:c","001:02:03","01:02:03.123456789","01:02:3.5","","12:34:56.-5","-1:00:00","1::1","01:02:03:04",":::","+1:00:00");
s("DurationType","","1y","1Y2MO","1mo","1M","1m","1y1y","1d1mo","1h1d","-1y2mo","- 1y","PT","P","P1Y","P1Y2M3DT","PT1H","P1D2Y","P1W1D","-P1Y","p1y","1.5h","1µs","1us","1US","1ns1ns","2147483647mo","2147483648d","178956971y","9223372036854775807ns","9223372036854775808ns","2562048h","2562047h","1x","1y x","99999999999999999999y","P0001-13-03T04:05:06","-P2W","1w1d1w","306783379w","1s1m","1ms1s","1us1ms","1ns1us","1d1w","1w1mo","1mo1y","1ms1ms","1h1h","1d1d","1w1w","1m1m","1s1s","106751d","200000000y","-2147483647mo");
s("InetAddressType","","1.2.3.4","1.2.3","localhost","256.0.0.1","::","::ffff:1.2.3.4","fe80::1%lo","1","[::1]","1.2.3.4.5","::1.2.3.4"," 1.2.3.4","01.2.3.4","1:2:3:4:5:6:7:8","x","1.2.3.","0x1.2.3.4");
s("BooleanType","","true","TRUE","false","x","1");
s("ByteType","","1","+1","-128","128"," 1","x");
s("ShortType","","1","+1","x");
s("Int32Type","","1","+1","-0","x","01");
s("LongType","","1","+1","x");
s("IntegerType","","1","+1","-0","x","00012");
s("DecimalType","","1","+1","-0","x","1e5","1E+5",".5","5.","1e","-1.50e-3","1e2147483647","1e2147483648","1e-2147483648","NaN","Infinity");
s("FloatType","","1","x","1e400","NaN","-NaN","Infinity","1f","0x1p3","1e-50");
s("DoubleType","","1","x","1e400","NaN","-Infinity","1d","-NaN");
s("UUIDType","","x","123e4567-e89b-42d3-a456-426614174000","123E4567-E89B-42D3-A456-426614174000","1-2-3-4-5");
s("TimeUUIDType","","x","123e4567-e89b-42d3-a456-426614174000","50554d6e-29bb-11e5-b345-feff819cdc9f");
s("BytesType","","0","0x","00","zz");
s("AsciiType","","é","a");
s("EmptyType","","a");
s("TupleType(Int32Type,UTF8Type)","","1:a","1","1:a:b","x:a","1:@","@:a","1:a\\:b",":");
s("CompositeType(Int32Type,UTF8Type)","","1:a","1","1:a:b","x:a","1:a\\:b");

String[] all={"1","1.5","1e3","true","\"1\"","\"x\"","\"\"","[1]","{\"a\":1}","3000000000","30000000000000000000","\"1.5\"","\"true\"","-1","1.0","1e400","0.1","\"NaN\"","\"1e5\"","\"0xff\"","\"0x\"","\"2020-02-29\"","\"12:00:00\"","\"127.0.0.1\"","\"50554d6e-29bb-11e5-b345-feff819cdc9f\"","\"1y\"","\"é\"","\"[1]\"","128","\" 1\"","1E5","100000000000000000.5"};
for (String t: new String[]{"AsciiType","LongType","BytesType","BooleanType","CounterColumnType","SimpleDateType","DecimalType","DoubleType","DurationType","FloatType","InetAddressType","Int32Type","ShortType","UTF8Type","TimeType","TimestampType","TimeUUIDType","ByteType","UUIDType","IntegerType"}) j(t, all);
j("ListType(Int32Type)","[]","[1,2]","[null]","null","1","\"x\"","\"[1,2]\"","{}","[\"3\"]","[1.5]","[[1]]");
j("SetType(Int32Type)","[]","[2,1,2]","[null]","1","\"[1]\"","{}","[1.5]");
j("MapType(Int32Type,UTF8Type)","{}","{\"1\":\"a\"}","{\"1\":null}","1","[]","\"{\\\"1\\\":\\\"a\\\"}\"","{\"x\":\"a\"}","{\"2\":\"b\",\"1\":\"a\",\"2\":\"c\"}");
j("MapType(UTF8Type,Int32Type)","{\"a\":1,\"b\":2}","{\"a\":1.5}");
j("MapType(FrozenType(ListType(Int32Type)),Int32Type)","{\"[1, 2]\":1}","{\"x\":1}");
j("MapType(BooleanType,TimestampType)","{\"true\":1}");
j("TupleType(Int32Type,UTF8Type)","[1,\"a\"]","[1]","[1,null]","[1,\"a\",2]","[]","1","{}","\"[1,\\\"a\\\"]\"","[1.5,\"a\"]");
j("UserType(ks,61646472,737472656574:UTF8Type,4e:Int32Type)","{}","{\"street\":\"a\"}","{\"STREET\":\"a\"}","{\"N\":1}","{\"\\\"N\\\"\":1}","{\"n\":1}","{\"x\":1}","[]","1","{\"street\":null,\"\\\"N\\\"\":null}","{\"street\":1}");
j("VectorType(FloatType,2)","[1,2]","[1]","[1,2,3]","[1,null]","1","{}","\"[1,2]\"","[\"1\",\"NaN\"]","[true,1]");
j("EmptyType","\"\"","1","null");
j("Int32Type","null","{","[1","tru","\"a","01","1 2","'1'","nan","NaN");

// Random values, the same ones each time, with the bytes that matter for signs made frequent.
Random rnd=new Random(7);
String rh(int n){byte[] b=new byte[n]; rnd.nextBytes(b); for(int i=0;i<n;i++){ int r=rnd.nextInt(6); if(r==0)b[i]=0; if(r==1)b[i]=(byte)0xff; if(r==2)b[i]=(byte)0x80; } return hx(b);}
List<String> fixed(int n,int k,String... more){ List<String> l=new ArrayList<>(Arrays.asList(more)); l.add(""); for(int i=0;i<k;i++) l.add(rh(n)); return l; }
List<String> var(int max,int k,String... more){ List<String> l=new ArrayList<>(Arrays.asList(more)); l.add(""); for(int i=0;i<k;i++) l.add(rh(rnd.nextInt(max+1))); return l; }
c("ByteType",fixed(1,20,"00","01","ff","80","7f"));
c("ShortType",fixed(2,20)); c("Int32Type",fixed(4,30)); c("LongType",fixed(8,30)); c("TimestampType",fixed(8,20)); c("SimpleDateType",fixed(4,30)); c("TimeType",fixed(8,20));
c("BooleanType",Arrays.asList("","00","01","02","ff"));
c("FloatType",fixed(4,40,"7fc00000","7fc00001","ffc00000","7f800000","ff800000","80000000","00000000","00000001","80000001"));
c("DoubleType",fixed(8,40,"7ff8000000000000","7ff8000000000001","fff8000000000000","7ff0000000000000","fff0000000000000","8000000000000000","0000000000000000"));
c("BytesType",var(5,40,"00","0000","00ff","ff00")); c("AsciiType",Arrays.asList("","61","6100","6161","62","00","7f")); c("UTF8Type",Arrays.asList("","61","6100","c3a9","7a","e697a5","f09f9880","61c3a9"));
c("InetAddressType",Arrays.asList("","7f000001","ffffffff","00000000000000000000000000000001","00000000000000000000ffff01020304","01020304","ff000000000000000000000000000001","00000000"));
c("IntegerType",var(5,60,"00","ff","0000","ffff","0080","80","ff80","007f","000000000000007f","ffffffffffff80"));
List<String> dec=new ArrayList<>(); for(String s:new String[]{"0","0.0","0E+5","1","1.0","1.00","-1","-1.0","10","1E+1","9.99","-9.99","0.001","1E-400","1E+400","-1E+400","-1E-400","123456789012345678901234567890","1.23456789012345678901234567890E+29","99","9.9E+1","100","101","-100","-101","-99","12","1.2","120","0.12","19","2"}) dec.add(ByteBufferUtil.bytesToHex(DecimalType.instance.decompose(new java.math.BigDecimal(s)))); dec.add(""); for(int i=0;i<40;i++){ dec.add("0000000"+rnd.nextInt(6)+rh(1+rnd.nextInt(3))); dec.add("fffffff"+Integer.toHexString(10+rnd.nextInt(6))+rh(1+rnd.nextInt(3)));} 
c("DecimalType",dec);
List<String> uu=fixed(16,20); for(int v=0;v<16;v++) for(int k=0;k<4;k++){ String h=rh(16); uu.add(h.substring(0,12)+Integer.toHexString(v)+h.substring(13)); } String b0="50554d6e29bb11e5"; for(int k=0;k<12;k++) uu.add(b0+rh(8)); 
c("UUIDType",uu);
List<String> tu=new ArrayList<>(); tu.add(""); for(int k=0;k<40;k++){ String h=rh(16); tu.add(h.substring(0,12)+"1"+h.substring(13)); } for(int k=0;k<20;k++) tu.add(b0+rh(8)); 
c("TimeUUIDType",tu); 
c("DurationType",Arrays.asList("000000","020000","000002","0000fc4e94914f0000","010000","000001"));
String[] el={"ffffffff","00000000","00000004"+"00000001","00000004"+"80000000","00000004"+"7fffffff","00000004"+"00000000"};
List<String> ls=new ArrayList<>(); ls.add("00000000"); for(int i=0;i<60;i++){int n=rnd.nextInt(4); String s="0000000"+n; for(int j=0;j<n;j++) s+=el[1+rnd.nextInt(5)]; ls.add(s);} 
c("FrozenType(ListType(Int32Type))",ls); c("FrozenType(SetType(Int32Type))",ls);
String[] te={"0000000161","00000000","000000026100","0000000162"};
List<String> ms=new ArrayList<>(); ms.add("00000000"); for(int i=0;i<60;i++){int n=rnd.nextInt(3); String s="0000000"+n; for(int j=0;j<n;j++) s+=el[1+rnd.nextInt(5)]+te[rnd.nextInt(4)]; ms.add(s);} 
c("FrozenType(MapType(Int32Type,UTF8Type))",ms);
List<String> ts=new ArrayList<>(); ts.add(""); for(int i=0;i<80;i++){int n=rnd.nextInt(4); String s=""; if(n>0) s+=el[rnd.nextInt(6)]; if(n>1) s+=(rnd.nextInt(3)==0?"ffffffff":te[rnd.nextInt(4)]); if(n>2) s+=el[rnd.nextInt(6)]; ts.add(s);} 
c("TupleType(Int32Type,UTF8Type,Int32Type)",ts); c("FrozenType(UserType(ks,61646472,61:Int32Type,62:UTF8Type,63:Int32Type))",ts);
String[] de=new String[12]; for(int i=0;i<12;i++){ String h=dec.get(i); de[i]=String.format("%08x",h.length()/2)+h; }
List<String> dl=new ArrayList<>(); for(int i=0;i<60;i++){int n=rnd.nextInt(4); String s="0000000"+n; for(int j=0;j<n;j++) s+=de[rnd.nextInt(12)]; dl.add(s);} 
c("FrozenType(ListType(DecimalType))",dl);
c("VectorType(FloatType,2)",fixed(8,40)); c("VectorType(Int32Type,2)",fixed(8,30));
List<String> vt=new ArrayList<>(); String[] ve={"00","0161","026162","0162","0100"}; for(int i=0;i<40;i++) vt.add(ve[rnd.nextInt(5)]+ve[rnd.nextInt(5)]); c("VectorType(UTF8Type,2)",vt);
c("FrozenType(ListType(TupleType(Int32Type,Int32Type)))", Arrays.asList("00000001"+"00000008"+"0000000400000001","00000001"+"0000000c"+"0000000400000001ffffffff","0000000100000000","00000000","00000001"+"00000010"+"00000004000000010000000400000001"));

for (var file : files.entrySet()) { java.nio.file.Files.writeString(java.nio.file.Path.of(System.getProperty("out"), file.getKey() + ".json"), "[\n" + String.join(",\n", file.getValue()) + "\n]\n"); }
/exit
