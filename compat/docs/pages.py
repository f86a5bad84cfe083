"""Runs the commands and programs that pages of the book print, as a reader would, and compares what they print.

Every fenced or indented block of a page runs, from top to bottom, in one shell that starts in a copy of the repository. So `cd` and `export`
last until the end of the page. A comment before a block says what it is; the reader does not see it. Its words are joined by `;`:

    <!-- run -->                        commands of bash (also without a comment); each must succeed
    <!-- run: exit 1 -->                the last command ends with this status
    <!-- run: output -->                what the commands before printed; `…` stands for any text, a line of `…` for any lines
    <!-- run: part of output -->        lines that stand in it, in this order
    <!-- run: session -->               `$ COMMAND` and `cqlsh> STATEMENT` with what they print
    <!-- run: servers -->               commands that serve: each is ready before the next begins, and the last goes on; a later
                                        block of servers, and the end of the page, stop it
    <!-- run: cql -->                   statements for cqlsh, with the options in CQLSH_OPTIONS; also every block fenced as sql
    <!-- run: file NAME -->             the text of a file in the shell's folder; with `lines 15` it may have so many
                                        lines of code: imports, blank lines and closing brackets do not count
    <!-- run: needs go -->              skips the rest of the page where this program is missing; with CI=true it fails
    <!-- run: outside -->               the shell with the machine's network, see below
    <!-- run: as PAGE -->              the lines stand in blocks of another page, which runs them
    <!-- run: help of COMMAND -->      the lines stand in what `COMMAND --help` prints, which breaks lines elsewhere and has other brackets;
                                       without `of COMMAND` each line at the margin is a command, and the lines below it stand in its help
    <!-- run: not REASON -->            does not run here, for this reason
    <!-- before: COMMANDS -->           commands of bash that the reader does not see

README.md has no such comments: it is typed as it stands, from top to bottom, in one shell whose home is empty and whose search path has the
system's programs, cargo and a C compiler. Blocks fenced as `sh` are typed, those fenced as `text` are what the block before printed, and lines
of other languages stand in the page of docs/src/testing that the text before links. With --build cargo compiles there.

Pages print fixed ports. The shell therefore has a network of its own, with a loopback interface and nothing else; installers run `outside` it.
Where the system gives no such network, the fixed ports must be free. `cargo run --release -- …` runs the program that HELENUS_BIN names.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Pages that run where none is named.
USUAL = ["README.md", *(f"docs/src/{part}" for part in ("start", "testing", "cosmos", "operate", "reference", "internals"))]

#: Seconds that one block may take: an installer that compiles is the slowest.
BLOCK_SECONDS_MAX = int(os.environ.get("DOCS_BLOCK_SECONDS", "600"))

#: Seconds until a server is ready.
READY_SECONDS_MAX = 30

#: Ports that pages name.
PORTS = [9042, 9043, 9142, 10350]


class Wrong(Exception):
    """A block does not do what its page says."""


class Missing(Exception):
    """A program that the page needs is not on this machine."""


class Block:
    """Lines of code of a page: `start` is the number of the first, `said` the comment before it, `before` hidden commands."""

    def __init__(self, start, lines, language, said, before):
        self.start, self.lines, self.language, self.before = start, lines, language, before
        self.said = [word.strip() for word in (said or "").split(";") if word.strip()]
        if not said and language == "sql":
            self.said = ["cql"]

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    def word(self, name):
        """What follows `name` in the comment; `None`: it does not say so."""
        for said in self.said:
            if said == name or said.startswith(name + " "):
                return said[len(name) :].strip()
        return None


def blocks(text):
    """The blocks of a page, and comments with commands that stand before no block."""
    found, said, before = [], None, []
    lines = text.split("\n")
    at, paragraph = 0, False
    while at < len(lines):
        line = lines[at]
        if line.startswith("<!--"):
            comment = line
            while "-->" not in lines[at]:
                at += 1
                comment += "\n" + lines[at]
            inner = comment.strip()[4:-3].strip()
            if inner.startswith("before:"):
                before.append(inner[7:].strip())
            elif inner.startswith("run"):
                said = inner[3:].lstrip(":").strip() or "shell"
            at += 1
            paragraph = False
            continue
        if line.startswith("```"):
            first = at + 1
            at = first
            while not lines[at].startswith("```"):
                at += 1
            found.append(Block(first + 1, lines[first:at], line[3:].strip(), said, before))
            said, before = None, []
        elif line.startswith("    ") and not paragraph:
            first = at
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                at += 1
            kept = lines[first:at]
            while not kept[-1].strip():
                kept.pop()
            found.append(Block(first + 1, [kept_line[4:] for kept_line in kept], "", said, before))
            said, before = None, []
            paragraph = False
            continue
        elif line.strip():
            # Text behind a comment that no block follows.
            said = None
        # An indented line below a list's item goes on with the item.
        paragraph = bool(line.strip()) and not line.startswith("#")
        at += 1
    if before:
        found.append(Block(len(lines), [], "", "hidden", before))
    return found


def like(pattern):
    """A regular expression for a line of a page: `…` is any text, and the widths of columns may differ."""
    parts = [re.escape(part) for part in re.sub(r"\s+", " ", pattern.strip()).split("…")]
    return re.compile(".*".join(parts) + r"\Z")


def squeezed(text):
    lines = [re.sub(r"\s+", " ", re.sub(r"-{2,}(\+-+)*", lambda match: re.sub("-+", "--", match[0]), line)).strip() for line in text.split("\n")]
    return [line for line in lines if line]


def words(text):
    """A text without its line breaks, brackets and marks."""
    return " " + re.sub(r"[\s<>\[\]=,:;.]+", " ", text).strip() + " "


def compare(page, got, whole=True):
    """Raises when `got` is not what `page` shows."""
    wanted, had = squeezed(page), squeezed(got)
    at = 0
    loose = not whole
    for line in wanted:
        if line == "…":
            loose = True
            continue
        expression = like(line)
        while loose and at < len(had) and not expression.match(had[at]):
            at += 1
        if at >= len(had) or not expression.match(had[at]):
            raise Wrong(f"the page shows\n  {line}\nhere the output is\n" + "\n".join("  " + text for text in had[max(0, at - 3) : at + 12]))
        at += 1
        loose = not whole
    if not loose and at < len(had):
        raise Wrong("the output goes on:\n" + "\n".join("  " + text for text in had[at : at + 12]))


def lines_of_code(lines):
    """How many lines a user has to think of: none for imports and for brackets that close."""
    text = re.sub(r"(?ms)^import \(.*?^\)", "", "\n".join(lines))
    skip = re.compile(r"\s*$|\s*[\])};]+$|(import|from|use|package) ")
    return len([line for line in text.split("\n") if not skip.match(line)])


class Shell:
    """A bash whose state lasts from block to block. `lonely`: with a network of its own."""

    def __init__(self, folder, environment, lonely):
        command = ["bash", "--norc", "--noprofile"]
        if lonely:
            command = [*lonely, *command]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, env=environment,
            text=True, start_new_session=True,
        )
        self.count = 0
        self.folder = folder
        if lonely:
            self.run("ip link set lo up")

    def run(self, commands):
        """(output, status): the status of the first command that failed."""
        self.count += 1
        end = f"end-of-block-{self.count}"
        script = Path(self.folder, f".block-{self.child.pid}-{self.count}")
        script.write_text(commands + "\n")
        self.child.stdin.write(f"bad=0; trap 'bad=$?' ERR; . {script} </dev/null; bad=$(( bad ? bad : 0 )); trap - ERR; printf '\\n{end} %s\\n' $bad; rm -f {script}\n")
        self.child.stdin.flush()
        lines = []
        limit = signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(Wrong(f"no end after {BLOCK_SECONDS_MAX} s")))
        signal.alarm(BLOCK_SECONDS_MAX)
        try:
            for line in self.child.stdout:
                if line.startswith(end):
                    return "".join(lines), int(line.split()[1])
                lines.append(line)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, limit)
        raise Wrong("the shell ended:\n" + "".join(lines))

    def must(self, commands):
        output, status = self.run(commands)
        if status:
            raise Wrong(f"status {status} of\n  {commands}\n{output}")
        return output

    def close(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()


class Page:
    """One page on its way."""

    def __init__(self, path, program, cqlsh, lonely):
        self.path = path
        self.work = Path(tempfile.mkdtemp(prefix="helenus-docs-"))
        self.clone = self.work / "helenus"
        self.tools(program, cqlsh)
        environment = {**os.environ, **self.environment()}
        environment = {name: value for name, value in environment.items() if value is not None}
        for name in list(environment):
            if name.startswith("HELENUS_") and name != "HELENUS_COMPAT_CACHE":
                del environment[name]
        environment.update(self.own())
        self.inside = Shell(self.clone, environment, lonely)
        self.outside = Shell(self.clone, environment, None)
        self.shell = self.inside
        self.output = ""
        self.ran = self.left = 0

    def tools(self, program, cqlsh):
        """A clone without history, and a folder with the programs that a reader has."""
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        for name in files:
            if name and (ROOT / name).is_file():
                (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.clone / name)
        tools = self.work / "bin"
        tools.mkdir()
        (tools / "helenus").symlink_to(program)
        (self.clone / "target/release").mkdir(parents=True)
        (self.clone / "target/release/helenus").symlink_to(program)
        (tools / "cqlsh").write_text(f'#!/bin/sh\nPYTHONWARNINGS=ignore exec "{cqlsh}" "$@"\n')
        real = shutil.which("cargo") or "/bin/false"
        (tools / "cargo").write_text(
            "#!/bin/sh\n# The program is built: `cargo run` starts it.\n"
            'if [ "$1 $2" = "run --release" ]; then shift 2; [ "$1" = -- ] && shift; exec helenus "$@"; fi\n'
            f'exec {real} "$@"\n'
        )
        for name in ("cqlsh", "cargo"):
            (tools / name).chmod(0o755)

    def environment(self):
        return {
            "PATH": f"{self.work / 'bin'}:{os.environ['PATH']}",
            "XDG_DATA_HOME": str(self.work / "data"),
            "XDG_RUNTIME_DIR": str(self.work),
            "HELENUS": str(self.clone),
            "CARGO_TARGET_DIR": os.environ.get("HELENUS_DOCS_TARGET", str(self.work / "target")),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "200",
        }

    def own(self):
        """Variables with the prefix HELENUS_."""
        return {"HELENUS_BIN": str(self.work / "bin/helenus")}

    def run(self, block):
        shell = self.shell = self.outside if block.word("outside") is not None else self.inside
        for commands in block.before:
            shell.must(commands)
        program = block.word("needs")
        if program and not shutil.which(program):
            raise Missing(program)
        if block.word("hidden") is not None:
            return
        reason = block.word("not")
        if reason is not None:
            if not reason:
                raise Wrong("a block that does not run needs a reason")
            self.left += 1
            return
        self.ran += 1
        name = block.word("file")
        if name:
            most = block.word("lines")
            if most and lines_of_code(block.lines) > int(most):
                raise Wrong(f"{name} has {lines_of_code(block.lines)} lines of code, more than {most}")
            file = Path(shell.must("pwd").strip(), name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        elif block.word("as"):
            page = (ROOT / block.word("as")).read_text()
            there = {line.strip() for other in blocks(page) if other.word("not") is None for line in other.lines}
            for line in block.lines:
                if line.strip() and line.strip() not in there:
                    raise Wrong(f"{block.word('as')} runs no line {line.strip()}")
        elif block.word("help") is not None:
            self.help(block.word("help").removeprefix("of").strip(), block.lines)
        elif block.word("output") is not None:
            compare(block.text, self.output)
        elif block.word("part") is not None:
            compare(block.text, self.output, whole=False)
        elif block.word("servers") is not None:
            self.serve([line for line in block.lines if line.strip()])
        elif block.word("cql") is not None:
            self.output = self.cql(block.text)
        elif block.word("session") is not None:
            self.session(block.lines)
        else:
            output, status = shell.run(block.text)
            wanted = int(block.word("exit") or 0)
            if status != wanted:
                raise Wrong(f"status {status}, not {wanted}:\n{output}")
            self.output = output

    def cql(self, text):
        """What cqlsh prints for statements."""
        file = self.work / "statements.cql"
        file.write_text(text)
        return self.shell.must(f"cqlsh $CQLSH_OPTIONS -f {file}")

    def help(self, command, lines):
        """Compares what a page says of commands, or of one, with what their `--help` says."""
        said = command and self.said(command)
        for line in lines:
            # That a setting is repeatable is the page's own.
            words_here = words(line.removesuffix(", may be given several times"))
            if not command and line.strip() and not line.startswith(" "):
                said = self.said(line)
            elif line.strip() and words_here not in said:
                raise Wrong(f"the help does not say\n  {line.strip()}")

    def said(self, command):
        return words(self.shell.must(f"{command} -h && {command} --help"))

    def serve(self, commands):
        """Starts each command and waits until it is ready; what the last prints becomes the output."""
        for command in commands:
            self.stop()
            log = self.work / "server.log"
            log.write_text("")
            # A line of a page may end with a comment. Standard error has the log, standard output the banner.
            self.shell.must(f"{{ {command.split('  #')[0]}\n}} >{log} 2>{log}.err & server=$!")
            begun = time.monotonic()
            while "serves CQL" not in log.read_text():
                if time.monotonic() - begun > READY_SECONDS_MAX:
                    raise Wrong(f"no server by\n  {command}\n{log.read_text()}{Path(str(log) + '.err').read_text()}")
                time.sleep(0.02)
            time.sleep(0.05)
            self.output = log.read_text()

    def stop(self):
        # The shell of the command ends when its program has ended; killed itself, it would not wait for that, and the port would be taken.
        self.inside.run("[[ -z ${server:-} ]] || { kill $(pgrep -P $server || echo $server); wait $server; }; server=")

    def session(self, lines):
        """Runs what stands behind prompts, and compares what stands between them."""
        at = 0
        while at < len(lines):
            line = lines[at]
            statements = []
            if line.startswith("$ "):
                command, at = line[2:], at + 1
            elif line.startswith("cqlsh> "):
                command = "cqlsh"
            else:
                raise Wrong(f"a session begins with a prompt, not with: {line}")
            while at < len(lines) and lines[at].startswith("cqlsh> "):
                statements.append(lines[at][7:])
                at += 1
                shown = []
                while at < len(lines) and not lines[at].startswith(("$ ", "cqlsh> ")):
                    shown.append(lines[at])
                    at += 1
                got = self.cql(statements[-1])
                compare("\n".join(shown), "\n".join(text for text in got.split("\n") if not re.match(r"\(\d+ rows?\)", text)))
            if command == "cqlsh":
                continue
            shown = []
            while at < len(lines) and not lines[at].startswith("$ "):
                shown.append(lines[at])
                at += 1
            if any("serves CQL" in text for text in shown):
                self.serve([command])
                compare("\n".join(shown), self.output, whole=False)
            else:
                compare("\n".join(shown), self.shell.must(command))

    def close(self):
        for step in (self.stop, self.inside.close, self.outside.close):
            try:
                step()
            except (Wrong, OSError, ValueError):
                pass
        shutil.rmtree(self.work, ignore_errors=True)


#: Programs that a reader of README.md need not have, and the program itself.
NOT_NEEDED = re.compile(r"(cqlsh|helenus|python|pip|node|np[mx]|go|gofmt|java|mvn)[0-9.]*\Z")


class Typed(Page):
    """README.md, typed as it stands."""

    def __init__(self, path, program, cqlsh, lonely, build):
        self.build = build
        super().__init__(path, program, cqlsh, None if build else lonely)
        self.linked = None

    def tools(self, program, cqlsh):
        super().tools(program, cqlsh)
        (self.work / "home").mkdir()
        tools = self.work / "bin"
        for name in ("helenus", "cqlsh", "cargo"):
            (tools / name).unlink()
        for folder in ("/usr/local/bin", "/usr/bin", "/bin"):
            for file in sorted(Path(folder).iterdir()) if Path(folder).is_dir() else []:
                if not NOT_NEEDED.match(file.name) and not (tools / file.name).exists():
                    (tools / file.name).symlink_to(file)
        if self.build:
            shutil.rmtree(self.clone / "target")
            for name in ("cargo", "rustc"):
                (tools / name).unlink(missing_ok=True)
                (tools / name).symlink_to(shutil.which(name))
        else:
            # The program is built.
            (tools / "cargo").unlink(missing_ok=True)
            (tools / "cargo").write_text('#!/bin/sh\n[ "$*" = "build --release" ]\n')
            (tools / "cargo").chmod(0o755)

    def environment(self):
        home = str(self.work / "home")
        rustup = os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup"))
        emptied = ("CARGO_TARGET_DIR", "CARGO_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME")
        return {"PATH": str(self.work / "bin"), "HOME": home, "RUSTUP_HOME": rustup, "LANG": "C.UTF-8", **dict.fromkeys(emptied)}

    def own(self):
        return {}

    def check(self, text):
        """No comment changes what the page says; what its tables say of the kits stands in their pages."""
        if "<!--" in text:
            raise Wrong("README.md has a comment that its reader does not see")
        for line in text.split("\n"):
            link = re.match(r"\| \[\w+\]\((docs/src/testing/\S+)\) \|", line)
            for code in re.findall("`([^`]+)`", line) if link else []:
                if code not in (ROOT / link[1]).read_text():
                    raise Wrong(f"{link[1]} has no {code}")

    def run(self, block):
        self.ran += 1
        if block.language == "sh":
            self.output = self.shell.must(block.text)
        elif block.language == "text":
            compare(block.text, self.output, whole=False)
        else:
            page = (ROOT / f"docs/src/testing/{block.language}.md").read_text()
            there = {line.strip() for other in blocks(page) for line in other.lines}
            for line in block.lines:
                if line.strip() and line.strip() not in there:
                    raise Wrong(f"docs/src/testing/{block.language}.md runs no line {line.strip()}")

    def stop(self):
        self.inside.run("kill $(jobs -p); wait")


def lonely():
    """The command that gives a program a network of its own; `None`: the system gives none."""
    for command in (["unshare", "-rn"], ["unshare", "-n"]):
        try:
            if subprocess.run([*command, "ip", "link", "set", "lo", "up"], capture_output=True).returncode == 0:
                return command
        except OSError:
            return None
    return None


def taken():
    """Ports of the pages that another program has."""
    found = []
    for port in PORTS:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                found.append(port)
    return found


def pages(named):
    if named == ["all"]:
        named = ["README.md", "CONTRIBUTING.md", "docs/src"]
    found = []
    for name in named or USUAL:
        path = ROOT / name
        found += sorted(path.rglob("*.md")) if path.is_dir() else [path]
    return [path for path in found if path.name != "SUMMARY.md"]


def main():
    arguments = argparse.ArgumentParser(description="runs what pages of the book print")
    arguments.add_argument("--cqlsh", required=True)
    arguments.add_argument("--build", action="store_true", help="compile the program that README.md names")
    arguments.add_argument("pages", nargs="*")
    given = arguments.parse_args()
    program = Path(os.environ["HELENUS_BIN"]).resolve()
    apart = lonely()
    if not apart and taken():
        print(f"docs: skipped, other programs have the ports {taken()}, and the system gives no network of its own")
        return 1 if os.environ.get("CI") == "true" else 77
    bad = 0
    for path in pages(given.pages):
        found = blocks(path.read_text())
        if not found:
            continue
        begun = time.monotonic()
        is_readme = path == ROOT / "README.md"
        page = Typed(path, program, given.cqlsh, apart, given.build) if is_readme else Page(path, program, given.cqlsh, apart)
        name = path.relative_to(ROOT)
        block = None
        try:
            if is_readme:
                block = found[0]
                page.check(path.read_text())
            for block in found:
                page.run(block)
            print(f"{name}: {page.ran} blocks hold, {page.left} do not run here, {time.monotonic() - begun:.0f} s", flush=True)
        except Missing as missing:
            print(f"{name}:{block.start}: skipped, {missing} is not on this machine", flush=True)
            bad += os.environ.get("CI") == "true"
        except Wrong as wrong:
            print(f"{name}:{block.start}: {wrong}", flush=True)
            bad += 1
        finally:
            page.close()
    return 1 if bad else 0


sys.exit(main())
