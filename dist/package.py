"""Packs the program that lies in a folder. Every format is written here, so that no packaging tool has to be installed.

    package.py deb|wheel|npm|image DIR

DIR/helenus is the program, for the machine's own architecture. Names and versions come from names.toml. The same program gives the same
bytes: archives hold no times and no users.
"""

import base64
import gzip
import hashlib
import io
import json
import pathlib
import platform
import struct
import subprocess
import sys
import tarfile
import tomllib
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NAMES = tomllib.loads((HERE / "names.toml").read_text())
VERSION = NAMES["version"]

#: What travels with every copy of the program: its licence, and those of the packages in it.
TERMS = {name: (HERE.parent / name).read_bytes() for name in ("LICENSE", "NOTICE")}

#: Most bytes of a package: what its user downloads.
PACKAGE_BYTES_MAX = 16_000_000

#: The kind of an ELF program header that names a dynamic linker.
PT_INTERP = 3

#: What each format calls this architecture: Debian and OCI, wheels, npm. Only x86_64 has been run.
DEBIAN, WHEEL, NODE = {"x86_64": ("amd64", "x86_64", "x64"), "aarch64": ("arm64", "aarch64", "arm64")}[platform.machine()]

#: glibc of 2014 and musl: the program needs neither, so both tags are true.
WHEEL_TAGS = [f"manylinux_2_17_{WHEEL}", f"manylinux2014_{WHEEL}", f"musllinux_1_1_{WHEEL}"]

#: The user of the image. It is not root and owns nothing else.
IMAGE_USER = 65532

#: 1980-01-01, the first day that zip files know.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def tar(entries):
    """A tar file. Entries: (name, bytes, or a path for a link, or None for a folder; mode, owner)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content, mode, owner in entries:
            info = tarfile.TarInfo(name)
            info.mode, info.uid, info.gid = mode, owner, owner
            if content is None:
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            elif isinstance(content, pathlib.PurePath):
                info.type, info.linkname = tarfile.SYMTYPE, str(content)
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(data):
    return gzip.compress(data, compresslevel=9, mtime=0)


def say(file):
    """Names a package and its size, which is what a user downloads."""
    size = file.stat().st_size
    print(f"{file.name}: {size} bytes")
    if size > PACKAGE_BYTES_MAX:
        sys.exit(f"package: {file.name} is larger than {PACKAGE_BYTES_MAX} bytes")


def refuse_dynamic(program):
    """Ends with an error for a program that needs a dynamic linker: tags and dependencies of the packages say that it needs no library."""
    head = program.read_bytes()[: 1 << 16]
    is_64_bit_elf = head[:5] == b"\x7fELF\x02"
    begin, size, count = struct.unpack_from("<Q", head, 32)[0], *struct.unpack_from("<HH", head, 54)
    kinds = [struct.unpack_from("<I", head, begin + size * number)[0] for number in range(count)] if is_64_bit_elf else [PT_INTERP]
    if PT_INTERP in kinds:
        sys.exit(f"package: {program} needs the libraries of its machine: dist/build without --program makes one that needs none")


def printed(program, *arguments):
    return subprocess.run([program, *arguments], check=True, capture_output=True).stdout


def script(name):
    """A script that dpkg runs."""
    return (f"./{name}", (HERE / f"debian-{name}").read_bytes(), 0o755, 0)


def deb(folder, program):
    """A Debian package: program, man page, completions, unit, settings."""
    name = NAMES["debian"]["package"]
    files = {
        f"usr/bin/{name}": (program.read_bytes(), 0o755),
        "usr/share/man/man1/helenus.1.gz": (zipped(printed(program, "man")), 0o644),
        "usr/share/bash-completion/completions/helenus": (printed(program, "completions", "bash"), 0o644),
        "usr/share/zsh/vendor-completions/_helenus": (printed(program, "completions", "zsh"), 0o644),
        "usr/share/fish/vendor_completions.d/helenus.fish": (printed(program, "completions", "fish"), 0o644),
        "usr/lib/systemd/system/helenus.service": ((HERE / "helenus.service").read_bytes(), 0o644),
        "etc/helenus/helenus.toml": ((HERE / "helenus.toml").read_bytes(), 0o644),
        f"usr/share/doc/{name}/copyright": (TERMS["NOTICE"] + b"\n" + TERMS["LICENSE"], 0o644),
    }
    size = sum(len(content) for content, _ in files.values()) // 1024
    control = (
        f"Package: {name}\nVersion: {VERSION}\nArchitecture: {DEBIAN}\nMaintainer: {NAMES['maintainer']}\n"
        f"Installed-Size: {size}\nSection: database\nPriority: optional\nDescription: {NAMES['summary']}\n"
    )
    target = folder / f"{name}_{VERSION}_{DEBIAN}.deb"
    control_tar = [("./control", control.encode(), 0o644, 0), ("./conffiles", b"/etc/helenus/helenus.toml\n", 0o644, 0)]
    control_tar += [script("postinst"), script("prerm"), script("postrm")]
    folders = sorted({str(parent) for path in files for parent in pathlib.PurePath(path).parents if str(parent) != "."})
    data = [(f"./{path}", None, 0o755, 0) for path in folders]
    data += [(f"./{path}", content, mode, 0) for path, (content, mode) in sorted(files.items())]
    members = [("debian-binary", b"2.0\n"), ("control.tar.gz", zipped(tar(control_tar))), ("data.tar.gz", zipped(tar(data)))]
    with open(target, "wb") as archive:
        archive.write(b"!<arch>\n")
        for member, content in members:
            archive.write(f"{member:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode())
            archive.write(content + b"\n" * (len(content) % 2))
    say(target)


def wheel(folder, program):
    """The Python kit with the program in it, and the pytest kit beside it."""
    kits = HERE.parent / "kits/python"
    server, kit = NAMES["pypi"]["server"], NAMES["pypi"]["kit"]
    files = {"helenus/__init__.py": (kits / "helenus/src/helenus/__init__.py").read_bytes()}
    files[f"{server}-{VERSION}.data/scripts/helenus"] = program.read_bytes()
    files |= {f"{server}-{VERSION}.dist-info/licenses/{term}": content for term, content in TERMS.items()}
    write_wheel(folder, server, files, WHEEL_TAGS, [])
    needs = tomllib.loads((kits / "pytest-helenus/pyproject.toml").read_text())["project"]["dependencies"]
    files = {
        path.name if path.parent.name == "src" else f"{path.parent.name}/{path.name}": path.read_bytes()
        for path in sorted((kits / "pytest-helenus/src").rglob("*.py"))
    }
    points = b"[pytest11]\nhelenus = pytest_helenus\n"
    write_wheel(folder, kit, files, ["any"], needs, points)


def write_wheel(folder, name, files, platforms, needs, entry_points=None):
    """A wheel, as the binary distribution format says. Its name has all tags, joined by dots."""
    stem = f"{name.replace('-', '_')}-{VERSION}"
    info = f"{stem}.dist-info"
    is_pure = platforms == ["any"]
    head = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {VERSION}",
        f"Summary: {NAMES['summary']}",
        f"License: {NAMES['license']}",
        "Requires-Python: >=3.9",
    ]
    files = dict(files)
    files[f"{info}/METADATA"] = ("\n".join(head + [f"Requires-Dist: {need}" for need in needs]) + "\n").encode()
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    purelib = "true" if is_pure else "false"
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: helenus\nRoot-Is-Purelib: {purelib}\n{tags}".encode()
    if entry_points:
        files[f"{info}/entry_points.txt"] = entry_points
    record = ""
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(content)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    target = folder / f"{stem}-py3-none-{'.'.join(platforms)}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, ZIP_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if "/scripts/" in path else 0o100644) << 16
            archive.writestr(entry, content)
    say(target)


def npm(folder, program):
    """The package that finds the program, one with the program of this platform, and the test kit. No script runs at an install."""
    name, kit = NAMES["npm"]["server"], NAMES["npm"]["kit"]
    carrier = f"{name}-linux-{NODE}"
    common = {"version": VERSION, "license": NAMES["license"]}
    carried = {"name": carrier, "description": f"{NAMES['summary']}: the program for Linux on {NODE}", **common}
    carried |= {"os": ["linux"], "cpu": [NODE], "files": ["helenus", *TERMS], "preferUnplugged": True}
    terms = {term: (content, 0o644) for term, content in TERMS.items()}
    pack(folder, carried, {"helenus": (program.read_bytes(), 0o755), **terms})
    finder = {"name": name, "description": NAMES["summary"], **common}
    # Only platforms whose package is made: an install asks the registry for every name in this list.
    finder |= {"main": "index.js", "bin": {"helenus": "helenus.js"}, "optionalDependencies": {carrier: VERSION}}
    sources = {file: ((HERE / "npm" / file).read_bytes(), 0o644) for file in ("index.js", "helenus.js")}
    pack(folder, finder, sources)
    tested = json.loads((HERE.parent / "kits/node/package.json").read_text())
    assert tested["name"] == kit and tested["version"] == VERSION, "names.toml and the kit's package.json differ"
    pack(folder, tested, {file: ((HERE.parent / "kits/node" / file).read_bytes(), 0o644) for file in tested["files"]})


def pack(folder, package, files):
    """A package's archive, as `npm pack` writes it."""
    files = {"package.json": ((json.dumps(package, indent=2) + "\n").encode(), 0o644), **files}
    entries = [(f"package/{path}", content, mode, 0) for path, (content, mode) in files.items()]
    target = folder / f"{package['name']}-{VERSION}.tgz"
    target.write_bytes(zipped(tar(entries)))
    say(target)


def image(folder, program):
    """An OCI image layout in a tar file, which podman, skopeo and docker load.

    https://github.com/opencontainers/image-spec/blob/main/image-layout.md
    """
    blobs = {}

    def blob(content, media, **more):
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(content), **more}

    layer = tar([
        ("data", None, 0o700, IMAGE_USER),
        ("etc", None, 0o755, 0),
        ("etc/passwd", f"helenus:x:{IMAGE_USER}:{IMAGE_USER}::/data:/nologin\n".encode(), 0o644, 0),
        ("tmp", None, 0o1777, 0),
        ("usr", None, 0o755, 0),
        ("usr/bin", None, 0o755, 0),
        # Test harnesses run it inside the container.
        ("usr/bin/cqlsh", pathlib.PurePath("helenus"), 0o777, 0),
        ("usr/bin/helenus", program.read_bytes(), 0o755, 0),
        ("usr/share", None, 0o755, 0),
        ("usr/share/doc", None, 0o755, 0),
        ("usr/share/doc/helenus", None, 0o755, 0),
        *((f"usr/share/doc/helenus/{term}", content, 0o644, 0) for term, content in TERMS.items()),
    ])
    compressed = zipped(layer)
    second = 1_000_000_000
    config = {
        "architecture": DEBIAN,
        "os": "linux",
        "config": {
            "User": f"{IMAGE_USER}:{IMAGE_USER}",
            "ExposedPorts": {"9042/tcp": {}},
            "Env": [
                "PATH=/usr/bin",
                "HOME=/data",
                "HELENUS_DATA=file:/data/helenus",
                "HELENUS_LISTEN=0.0.0.0:9042",
                # Only who publishes the container's port decides who reaches it.
                "HELENUS_ALLOW_UNAUTHENTICATED_NETWORK=true",
            ],
            "Entrypoint": ["/usr/bin/helenus"],
            "Cmd": ["serve"],
            "Volumes": {"/data": {}},
            "WorkingDir": "/data",
            "StopSignal": "SIGTERM",
            "Healthcheck": {
                "Test": ["CMD", "/usr/bin/helenus", "health"],
                "Interval": 10 * second,
                "Timeout": 5 * second,
                "StartPeriod": 5 * second,
                "Retries": 3,
            },
            "Labels": {
                "org.opencontainers.image.title": "helenus",
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.licenses": NAMES["license"],
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created_by": "dist/package.py"}],
    }
    text = lambda value: json.dumps(value, sort_keys=True).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": blob(text(config), "application/vnd.oci.image.config.v1+json"),
        "layers": [blob(compressed, "application/vnd.oci.image.layer.v1.tar+gzip")],
    }
    entry = blob(
        text(manifest),
        manifest["mediaType"],
        platform={"architecture": DEBIAN, "os": "linux"},
        annotations={"org.opencontainers.image.ref.name": VERSION},
    )
    layout = [("oci-layout", text({"imageLayoutVersion": "1.0.0"}), 0o644, 0)]
    layout += [("index.json", text({"schemaVersion": 2, "manifests": [entry]}), 0o644, 0)]
    layout += [(name, None, 0o755, 0) for name in ("blobs", "blobs/sha256")]
    layout += [(f"blobs/sha256/{digest}", content, 0o644, 0) for digest, content in blobs.items()]
    target = folder / f"{NAMES['image']}_{VERSION}_{DEBIAN}.oci.tar"
    target.write_bytes(tar(layout))
    say(target)


def main():
    part, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    program = folder / "helenus"
    refuse_dynamic(program)
    {"deb": deb, "wheel": wheel, "npm": npm, "image": image}[part](folder, program)


if __name__ == "__main__":
    main()
