"""bodies.py CASSANDRA OURS [--bodies N] [--seed S] [--keep FILE]: random bodies of user functions, asked of both.

Each body is Java of the subset that Helenus interprets: locals, if, loops, switch, try, Java's arithmetic with its overflows and
conversions, boxes and nulls, String, StringBuilder, Math, collections. It is created on both servers under the same name and called
with random arguments, edges and nulls among them. The results must be equal, and so must what is thrown, its text included. A body that
Cassandra refuses must be refused here; one that only Helenus refuses is counted by the construct that it names.
"""

import argparse
import collections
import random
import re
import sys
import time

from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.query import SimpleStatement

# A Java type: its CQL type, its box.
SCALARS = {
    "int": ("int", "Integer"),
    "long": ("bigint", "Long"),
    "double": ("double", "Double"),
    "float": ("float", "Float"),
    "short": ("smallint", "Short"),
    "byte": ("tinyint", "Byte"),
    "boolean": ("boolean", "Boolean"),
    "String": ("text", "String"),
}
COLLECTIONS = {
    "List<Integer>": "list<int>",
    "List<String>": "list<text>",
    "Set<Integer>": "set<int>",
    "Map<String, Integer>": "map<text, int>",
}
NUMBERS = ["byte", "short", "int", "long", "float", "double"]
WHOLE = ["byte", "short", "int", "long"]
BITS = {"byte": 8, "short": 16, "int": 32, "long": 64}
WORDS = ["", "a", "abc", "Hello, World", " x ", "12", "-7", "3.5", "äöü", "日本", "a,b,c", "zz top", "0x1F", "TRUE", "e\\u0301"]


class Body:
    """One random function."""

    def __init__(self, rng):
        self.rng = rng
        self.boxed = rng.random() < 0.6
        self.counter = 0
        self.loops = 0
        self.scope = []
        self.fixed = set()
        types = list(SCALARS) + (list(COLLECTIONS) if rng.random() < 0.6 else [])
        self.arguments = [(f"p{i}", rng.choice(types)) for i in range(rng.randint(1, 4))]
        self.returns = rng.choice(list(SCALARS) * 3 + list(COLLECTIONS))
        for name, ty in self.arguments:
            self.scope.append((name, self.own(ty)))
        # What a local variable holds is read, since Cassandra's compiler leaves out some of what computes unread ones.
        lines = ["  StringBuilder log = new StringBuilder();"]
        for _ in range(rng.randint(0, 7)):
            self.statement(lines, 1, 2)
        result = self.result()
        if self.returns == "String" and result != "null":
            result = f"log.append({result}).toString()"
        lines.append(f"return {result};")
        self.text = "\n".join(lines)

    def own(self, ty):
        """The type of an argument or result in Java."""
        return SCALARS[ty][1] if self.boxed and ty in SCALARS else ty

    def result(self):
        if self.boxed and self.rng.random() < 0.05:
            return "null"
        return self.expression(self.own(self.returns), 4)

    def cql(self, ty):
        return COLLECTIONS.get(ty) or SCALARS[ty][0]

    def named(self, ty):
        self.counter += 1
        name = f"v{self.counter}"
        self.scope.append((name, ty))
        return name

    def of(self, ty):
        return [name for name, other in self.scope if other == ty]

    def chance(self, share):
        return self.rng.random() < share

    # Statements.

    def statement(self, lines, indent, depth):
        pad = "  " * indent
        rng = self.rng
        kind = rng.randrange(15)
        mutable = [(name, ty) for name, ty in self.scope if name not in self.fixed]
        if kind < 5 or not mutable:
            ty = rng.choice(list(SCALARS) * 2 + [box for _, box in SCALARS.values()] + list(COLLECTIONS))
            value = self.expression(ty, 3)
            name = self.named(ty)
            lines.append(f"{pad}{ty} {name} = {value};")
            lines.append(f"{pad}log.append({name}).append(' ');")
        elif kind < 7:
            name, ty = rng.choice(mutable)
            lines.append(f"{pad}{name} = {self.expression(ty, 3)};")
            self.bound(lines, pad, name, ty)
        elif kind == 7:
            numbers = [(name, ty) for name, ty in mutable if ty in NUMBERS]
            if numbers:
                name, ty = rng.choice(numbers)
                whole = ty in WHOLE
                operator = rng.choice(["+=", "-=", "*=", "/=", "%="] + (["<<=", ">>=", ">>>=", "&=", "|=", "^="] if whole else []))
                other = rng.choice(WHOLE if operator in ("<<=", ">>=", ">>>=", "&=", "|=", "^=") else NUMBERS)
                lines.append(f"{pad}{name} {operator} {self.expression(other, 2)};")
                lines.append(f"{pad}log.append({name});")
        elif kind == 8:
            numbers = [name for name, ty in mutable if ty in NUMBERS or ty in ("Integer", "Long", "Double")]
            if numbers:
                name = rng.choice(numbers)
                lines.append(pad + rng.choice([f"{name}++;", f"{name}--;", f"++{name};", f"--{name};"]))
        elif kind == 9:
            texts = [name for name, ty in mutable if ty == "String"]
            if texts:
                name = rng.choice(texts)
                lines.append(f"{pad}{name} += {self.expression(rng.choice(list(SCALARS)), 2)};")
                self.bound(lines, pad, name, "String")
        elif kind == 10 and depth:
            lines.append(f"{pad}if ({self.expression('boolean', 3)}) {{")
            self.block(lines, indent + 1, depth - 1)
            if self.chance(0.5):
                lines.append(pad + "} else {")
                self.block(lines, indent + 1, depth - 1)
            lines.append(pad + "}")
        elif kind == 11 and depth and self.loops < 3:
            self.loop(lines, indent, depth)
        elif kind == 12:
            self.change_collection(lines, pad)
        elif kind == 13 and depth:
            lines.append(pad + "try {")
            self.block(lines, indent + 1, depth - 1)
            caught = rng.choice(["RuntimeException", "ArithmeticException", "NullPointerException", "IndexOutOfBoundsException", "NumberFormatException"])
            self.counter += 1
            lines.append(f"{pad}}} catch ({caught} e{self.counter}) {{")
            texts = [name for name, ty in mutable if ty == "String"]
            if texts and self.chance(0.5):
                lines.append(f"{pad}  {rng.choice(texts)} = \"caught\";")
            self.block(lines, indent + 1, depth - 1)
            lines.append(pad + "}")
        elif kind == 14 and depth:
            lines.append(f"{pad}switch ({self.expression('int', 2)}) {{")
            for value in rng.sample(range(-2, 6), rng.randint(1, 3)):
                lines.append(f"{pad}  case {value}: {{")
                self.block(lines, indent + 2, depth - 1)
                lines.append(f"{pad}  }}")
                if self.chance(0.6):
                    lines.append(f"{pad}  break;")
            if self.chance(0.6):
                lines.append(f"{pad}  default: {{")
                self.block(lines, indent + 2, depth - 1)
                lines.append(f"{pad}  }}")
            lines.append(pad + "}")

    def bound(self, lines, pad, name, ty):
        """A text that doubles in a loop would take longer than Cassandra bears: it ends its whole process."""
        if ty == "String" and self.loops:
            lines.append(f"{pad}if ({name} != null && {name}.length() > 60) {name} = {name}.substring(0, 7);")

    def block(self, lines, indent, depth):
        before = len(self.scope)
        for _ in range(self.rng.randint(1, 3)):
            self.statement(lines, indent, depth)
        del self.scope[before:]

    def loop(self, lines, indent, depth):
        rng = self.rng
        pad = "  " * indent
        self.loops += 1
        before = len(self.scope)
        kind = rng.randrange(4)
        if kind == 0:
            lists = [(name, ty) for name, ty in self.scope if ty in ("List<Integer>", "List<String>")]
            if lists:
                name, ty = rng.choice(lists)
                element = "Integer" if "Integer" in ty else "String"
                item = self.named(element)
                self.fixed.add(name)
                lines.append(f"{pad}for ({element} {item} : {name}) {{")
                self.block(lines, indent + 1, depth - 1)
                self.fixed.discard(name)
                lines.append(pad + "}")
        elif kind == 1:
            name = self.named("int")
            self.fixed.add(name)
            step = rng.choice(["++", " += 2", "++"])
            lines.append(f"{pad}for (int {name} = {rng.randint(-2, 2)}; {name} < {rng.randint(0, 9)}; {name}{step}) {{")
            self.block(lines, indent + 1, depth - 1)
            if self.chance(0.3):
                lines.append(f"{pad}  if ({self.expression('boolean', 2)}) {rng.choice(['break', 'continue'])};")
            lines.append(pad + "}")
        elif kind == 2:
            name = self.named("int")
            self.fixed.add(name)
            lines.append(f"{pad}int {name} = {rng.randint(1, 6)};")
            lines.append(f"{pad}while ({name}-- > 0) {{")
            self.block(lines, indent + 1, depth - 1)
            lines.append(pad + "}")
        else:
            name = self.named("long")
            self.fixed.add(name)
            lines.append(f"{pad}long {name} = {rng.randint(1, 6)};")
            lines.append(f"{pad}do {{")
            self.block(lines, indent + 1, depth - 1)
            lines.append(f"{pad}}} while (--{name} > 0);")
        self.loops -= 1
        del self.scope[before:]

    def change_collection(self, lines, pad):
        rng = self.rng
        made = [(name, ty) for name, ty in self.scope if ty in COLLECTIONS and name not in self.fixed]
        if not made:
            return
        name, ty = rng.choice(made)
        if ty.startswith("Map"):
            lines.append(pad + rng.choice([
                f"{name}.put({self.expression('String', 1)}, {self.expression('int', 2)});",
                f"{name}.remove({self.expression('String', 1)});",
            ]))
        elif ty.startswith("List"):
            element = "int" if "Integer" in ty else "String"
            lines.append(pad + rng.choice([
                f"{name}.add({self.expression(element, 2)});",
                f"{name}.set({self.expression('int', 1)}, {self.expression(element, 2)});",
                f"{name}.add({rng.randint(0, 2)}, {self.expression(element, 2)});",
                f"{name}.clear();",
            ]))
        else:
            lines.append(pad + rng.choice([f"{name}.add({self.expression('int', 2)});", f"{name}.remove({rng.randint(0, 3)});"]))

    # Expressions.

    def literal(self, ty):
        rng = self.rng
        if ty == "boolean":
            return rng.choice(["true", "false"])
        if ty == "String":
            return '"' + rng.choice(WORDS) + '"'
        if ty in WHOLE:
            bits = BITS[ty]
            edge = rng.choice([0, 1, -1, 2, 3, 7, 10, 31, 33, 100, -100, rng.randrange(-(1 << (bits - 1)), 1 << (bits - 1)),
                               (1 << (bits - 1)) - 1, -(1 << (bits - 1))])
            text = f"{edge}L" if ty == "long" else str(edge)
            text = f"({text})" if edge < 0 else text
            return f"({ty}) {text}" if ty in ("byte", "short") else text
        number = rng.choice(["0.0", "1.0", "(-1.5)", "2.5", "1e10", "(-0.0)", "3.14159", "1e-7", "123456.789", "1e30", "0.1"])
        if ty == "float":
            return number.replace(")", "f)") if number.endswith(")") else number + "f"
        return rng.choice([number, "Double.NaN", "Double.POSITIVE_INFINITY", "Double.MAX_VALUE"]) if self.chance(0.3) else number

    def expression(self, ty, depth):
        rng = self.rng
        if ty in COLLECTIONS:
            return self.collection(ty, depth)
        boxes = {box: prim for prim, (_, box) in SCALARS.items() if prim != "String"}
        if ty in boxes:
            names = self.of(ty)
            if names and self.chance(0.4):
                return rng.choice(names)
            if self.chance(0.08):
                return "null"
            if ty == "Integer" and self.chance(0.2):
                return rng.choice([f"Integer.valueOf({self.expression('int', depth - 1)})"] + [f"{m}.get({self.expression('String', 1)})" for m in self.of("Map<String, Integer>")])
            prim = boxes[ty]
            # A box takes a value of just its type.
            value = self.expression(prim, depth)
            return f"({prim}) ({value})"
        names = self.of(ty)
        if ty in SCALARS and ty != "String":
            names = names + self.of(SCALARS[ty][1])
        if depth <= 0 or self.chance(0.15):
            if names and self.chance(0.75):
                return rng.choice(names)
            return "((String) null)" if ty == "String" and self.chance(0.03) else self.literal(ty)
        if self.chance(0.08):
            return f"({self.expression('boolean', depth - 1)} ? {self.expression(ty, depth - 1)} : {self.expression(ty, depth - 1)})"
        if ty == "boolean":
            return self.boolean(depth)
        if ty == "String":
            return self.string(depth)
        return self.number(ty, depth)

    def number(self, ty, depth):
        rng = self.rng
        down = depth - 1
        sub = lambda of: self.expression(of, down)
        if ty in ("byte", "short"):
            return f"({ty}) ({sub(rng.choice(NUMBERS))})"
        lower = NUMBERS[: NUMBERS.index(ty) + 1]
        def operand():
            return sub(rng.choice([ty, ty, rng.choice(lower)]))
        kinds = ["arithmetic"] * 5 + ["cast", "negate", "math", "special"]
        if ty in ("int", "long"):
            kinds += ["bits", "shift", "not"]
        kind = rng.choice(kinds)
        if kind == "arithmetic":
            return f"({sub(ty)} {rng.choice(['+', '-', '*', '/', '%'])} {operand()})"
        if kind == "bits":
            other = rng.choice([of for of in WHOLE if WHOLE.index(of) <= WHOLE.index(ty)])
            return f"({sub(ty)} {rng.choice(['&', '|', '^'])} {sub(other)})"
        if kind == "shift":
            return f"({sub(ty)} {rng.choice(['<<', '>>', '>>>'])} {sub(rng.choice(['int', 'long', 'byte']))})"
        if kind == "not":
            return f"(~{sub(ty)})"
        if kind == "negate":
            return f"(-{sub(ty)})"
        if kind == "cast":
            return f"({ty}) ({sub(rng.choice(NUMBERS))})"
        if kind == "math":
            if ty == "double" and self.chance(0.6):
                name = rng.choice(["sqrt", "floor", "ceil", "abs", "rint", "signum", "cbrt"])
                return f"Math.{name}({sub('double')})"
            if ty in ("int", "long") and self.chance(0.4):
                return f"Math.{rng.choice(['floorDiv', 'floorMod', 'addExact', 'multiplyExact'])}({sub(ty)}, {sub(ty)})"
            if ty == "long" and self.chance(0.3):
                return f"Math.round({sub('double')})"
            if ty == "int" and self.chance(0.2):
                return f"Math.round({sub('float')})"
            name = rng.choice(["abs", "max", "min"])
            return f"Math.abs({sub(ty)})" if name == "abs" else f"Math.{name}({sub(ty)}, {sub(ty)})"
        if ty == "int":
            options = [
                f"{self.text_of(down)}.length()",
                f"{self.text_of(down)}.indexOf({sub('String')})",
                f"{self.text_of(down)}.charAt({sub('int')})",
                f"{self.text_of(down)}.compareTo({sub('String')})",
                f"{self.text_of(down)}.hashCode()",
                f"Integer.parseInt({sub('String')})",
                "Integer.MAX_VALUE", "Integer.MIN_VALUE",
                f"Integer.compare({sub('int')}, {sub('int')})",
                f"Long.compare({sub('long')}, {sub('long')})",
                f"Double.compare({sub('double')}, {sub('double')})",
            ]
            options += [f"{name}.size()" for name, of in self.scope if of in COLLECTIONS]
            options += [f"{name}.get({self.expression('int', 1)})" for name in self.of("List<Integer>")]
            options += [f"{name}.get({self.expression('String', 1)})" for name in self.of("Map<String, Integer>")]
            return rng.choice(options)
        if ty == "long":
            return rng.choice(["Long.MAX_VALUE", "Long.MIN_VALUE", f"Long.parseLong({sub('String')})", sub("long")])
        if ty == "double":
            return rng.choice([f"Double.parseDouble({sub('String')})", f"Math.pow({sub('double')}, {rng.choice(['2.0', '0.5', '3', '-1'])})", sub("double")])
        return sub(ty)

    def text_of(self, depth):
        """A text that methods are called on."""
        names = self.of("String")
        if names and self.chance(0.7):
            return self.rng.choice(names)
        return f"({self.string(depth)})" if depth > 0 else self.literal("String")

    def string(self, depth):
        rng = self.rng
        down = depth - 1
        sub = lambda of: self.expression(of, down)
        text = self.text_of(down)
        options = [
            lambda: f"({sub('String')} + {sub(rng.choice(list(SCALARS)))})",
            lambda: f"({sub('String')} + {sub(rng.choice(list(SCALARS)))})",
            lambda: f"(\"\" + {sub(rng.choice(NUMBERS))})",
            lambda: f"String.valueOf({sub(rng.choice(NUMBERS + ['boolean']))})",
            lambda: f"{text}.substring({sub('int')})",
            lambda: f"{text}.substring({rng.randint(0, 2)}, {sub('int')})",
            lambda: f"{text}.toUpperCase()",
            lambda: f"{text}.toLowerCase()",
            lambda: f"{text}.trim()",
            lambda: f"{text}.replace({sub('String')}, {sub('String')})",
            lambda: f"{text}.concat({sub('String')})",
            lambda: f"Integer.toString({sub('int')})",
            lambda: f"Long.toString({sub('long')})",
            lambda: f"Double.toString({sub('double')})",
            lambda: f"new StringBuilder({self.literal('String')}).append({sub(rng.choice(list(SCALARS)))}).append({sub(rng.choice(list(SCALARS)))}).toString()",
            lambda: f"new StringBuilder().append({sub('String')}).reverse().toString()",
        ]
        options += [lambda name=name: f"{name}.get({self.expression('int', 1)})" for name in self.of("List<String>")]
        options += [lambda name=name: f"(\"\" + {name})" for name, of in self.scope if of in COLLECTIONS]
        return rng.choice(options)()

    def boolean(self, depth):
        rng = self.rng
        down = depth - 1
        sub = lambda of: self.expression(of, down)
        kind = rng.randrange(9)
        if kind < 3:
            a, b = rng.choice(NUMBERS), rng.choice(NUMBERS)
            return f"({sub(a)} {rng.choice(['<', '<=', '>', '>='])} {sub(b)})"
        if kind == 3:
            a = rng.choice(NUMBERS)
            # Two boxes would be compared as objects.
            return f"(({a}) {sub(a)} {rng.choice(['==', '!='])} {self.literal(a)})"
        if kind == 4:
            return f"({sub('boolean')} {rng.choice(['&&', '||', '&', '|', '^'])} {sub('boolean')})"
        if kind == 5:
            return f"(!{sub('boolean')})"
        if kind == 6:
            return f"{self.text_of(down)}.{rng.choice(['equals', 'startsWith', 'endsWith', 'contains', 'equalsIgnoreCase'])}({sub('String')})"
        if kind == 7:
            names = [name for name, ty in self.scope if ty not in SCALARS or ty == "String"]
            return f"({rng.choice(names)} {rng.choice(['==', '!='])} null)" if names else self.literal("boolean")
        options = [f"{name}.contains({self.expression('int', 1)})" for name in self.of("List<Integer>") + self.of("Set<Integer>")]
        options += [f"{name}.containsKey({self.expression('String', 1)})" for name in self.of("Map<String, Integer>")]
        options += [f"{name}.isEmpty()" for name, of in self.scope if of in COLLECTIONS or of == "String"]
        return rng.choice(options) if options else self.literal("boolean")

    def collection(self, ty, depth):
        rng = self.rng
        names = self.of(ty)
        if names and self.chance(0.5):
            return rng.choice(names)
        if ty.startswith("Map"):
            return "new HashMap<String, Integer>()"
        if ty.startswith("Set"):
            return "new HashSet<Integer>()"
        element = "Integer" if "Integer" in ty else "String"
        return rng.choice([f"new ArrayList<{element}>()", f"new LinkedList<{element}>()" if self.chance(0.1) else f"new ArrayList<{element}>()"])

    # The statements that create and call it.

    def create(self, name):
        arguments = ", ".join(f"{name} {self.cql(ty)}" for name, ty in self.arguments)
        null = "CALLED" if self.boxed else "RETURNS NULL"
        return (f"CREATE FUNCTION {name} ({arguments}) {null} ON NULL INPUT RETURNS {self.cql(self.returns)} "
                f"LANGUAGE java AS $${self.text}$$")

    def value(self, ty):
        rng = self.rng
        if self.chance(0.1):
            # A function takes no collection with a type hint.
            return "null" if ty in COLLECTIONS else f"({self.cql(ty)}) null"
        quoted = lambda text: "'" + text.replace("\\u0301", "\u0301").replace("'", "''") + "'"
        if ty == "String":
            return f"(text) {quoted(rng.choice(WORDS))}"
        if ty == "boolean":
            return f"(boolean) {rng.choice(['true', 'false'])}"
        if ty in WHOLE:
            bits = BITS[ty]
            number = rng.choice([0, 1, -1, 2, 5, 7, 10, 100, rng.randrange(-(1 << (bits - 1)), 1 << (bits - 1)), (1 << (bits - 1)) - 1, -(1 << (bits - 1))])
            return f"({self.cql(ty)}) {number}"
        if ty in NUMBERS:
            return f"({self.cql(ty)}) {rng.choice(['0.0', '1.5', '-2.25', '1e10', '3.14159', 'NaN', 'Infinity', '-Infinity', '1e-7', '-0.0', '123456789.125'])}"
        number = lambda: str(rng.choice([0, 1, 2, 3, 7, -5, 100, 2147483647]))
        word = lambda: quoted(rng.choice(WORDS))
        if ty == "List<Integer>":
            inside = "[" + ", ".join(number() for _ in range(rng.randint(0, 4))) + "]"
        elif ty == "List<String>":
            inside = "[" + ", ".join(word() for _ in range(rng.randint(0, 4))) + "]"
        elif ty == "Set<Integer>":
            inside = "{" + ", ".join(sorted({number() for _ in range(rng.randint(1, 4))})) + "}"
        else:
            inside = "{" + ", ".join(f"{key}: {number()}" for key in sorted({word() for _ in range(rng.randint(1, 3))})) + "}"
        return inside

    def call(self, name):
        return f"SELECT {name}({', '.join(self.value(ty) for _, ty in self.arguments)}) FROM one WHERE k = 0"


def connect(address):
    host, port = address.rsplit(":", 1)
    profile = ExecutionProfile(request_timeout=600)
    cluster = Cluster([host], port=int(port), protocol_version=5, connect_timeout=30, schema_metadata_enabled=False,
                      token_metadata_enabled=False, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    return cluster.connect()


def without_slots(text):
    """The text of a null pointer without the variable, which Java names by the places that its compiler chose."""
    return re.sub(r" because \".*\" is null$", "", text)


def answer(future):
    """What came of a statement: rows, or the code and the text of an error."""
    try:
        return "ok", repr([tuple(row) for row in future.result()])
    except Exception as error:
        found = re.search(r"code=(\w+) .*?message=\"(.*)\"", str(error), re.S)
        code, text = found.groups() if found else (type(error).__name__, str(error))
        return "error", code, without_slots(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cassandra")
    parser.add_argument("ours")
    parser.add_argument("--bodies", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--calls", type=int, default=4)
    parser.add_argument("--shown", type=int, default=20)
    parser.add_argument("--keyspace", default="bodies")
    args = parser.parse_args()
    sessions = [connect(args.cassandra), connect(args.ours)]
    counts = collections.Counter()
    refused = collections.Counter()
    started = time.monotonic()
    size = 250
    for start in range(args.first, args.first + args.bodies, size):
        for session in sessions:
            session.execute(f"DROP KEYSPACE IF EXISTS {args.keyspace}")
            session.execute(f"CREATE KEYSPACE {args.keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
            session.execute(f"USE {args.keyspace}")
            session.execute("CREATE TABLE one (k int PRIMARY KEY)")
            session.execute("INSERT INTO one (k) VALUES (0)")
        made = []
        for number in range(start, min(start + size, args.first + args.bodies)):
            rng = random.Random(f"{args.seed}/{number}")
            body = Body(rng)
            calls = [body.call(f"f{number}") for _ in range(args.calls)]
            futures = [session.execute_async(SimpleStatement(body.create(f"f{number}"))) for session in sessions]
            made.append((number, body, calls, futures))
            if len(made) % 20 == 0:
                for future in made[-1][3]:
                    answer(future)
        asked = []
        for number, body, calls, futures in made:
            theirs, ours = map(answer, futures)
            counts["bodies"] += 1
            if theirs[0] == "error" and ours[0] == "error":
                counts["refused by both"] += 1
            elif ours[0] == "error":
                counts["refused here only"] += 1
                refused[ours[2].split("\n")[1] if "\n" in ours[2] else ours[2]] += 1
                if counts["refused here only"] <= args.shown:
                    print(f"REFUSED HERE {number}: {ours[2]}\n{body.text}\n")
            elif theirs[0] == "error" and "Missing code implementation in the compiler" in theirs[2]:
                counts["that Cassandra's compiler fails at"] += 1
            elif theirs[0] == "error":
                counts["refused by Cassandra only"] += 1
                if counts["refused by Cassandra only"] <= args.shown:
                    print(f"REFUSED BY CASSANDRA {number}: {theirs[2][:300]}\n{body.text}\n")
            else:
                for call in calls:
                    asked.append((number, body, call, [session.execute_async(SimpleStatement(call)) for session in sessions]))
        for number, body, call, futures in asked:
            theirs, ours = map(answer, futures)
            counts["calls"] += 1
            counts["thrown"] += theirs[0] == "error"
            if theirs == ours:
                continue
            texts = theirs[0] == ours[0] == "error" and theirs[1] == ours[1]
            if texts and ours[2].startswith(theirs[2] + ": "):
                # Java's compiler of hot code throws exceptions that were made before, without a text (-XX:+OmitStackTraceInFastThrow).
                counts["thrown without a text by hot code"] += 1
                continue
            kind = "other text" if texts else "different"
            counts[kind] += 1
            if counts[kind] <= args.shown:
                print(f"{kind.upper()} {number}: {call}\n  Cassandra {theirs}\n  Helenus   {ours}\n{body.text}\n")
        sys.stdout.flush()
    for what, count in refused.most_common(20):
        print(f"{count:6} {what}")
    for session in sessions:
        session.execute(f"DROP KEYSPACE IF EXISTS {args.keyspace}")
        session.cluster.shutdown()
    print(f"seed {args.seed}, {time.monotonic() - started:.0f} s: " + ", ".join(f"{count} {what}" for what, count in counts.items()))
    wrong = counts["different"] + counts["other text"] + counts["refused by Cassandra only"] + counts["refused here only"]
    return 1 if wrong or not counts["calls"] else 0


sys.exit(main())
