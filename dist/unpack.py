"""Checks an OCI image against its own digests, and unpacks it: what skopeo and umoci would do, where neither is there.

    unpack.py IMAGE.oci.tar ROOT

Writes the image's environment beside ROOT, to ROOT.env, a line each.
"""

import gzip
import hashlib
import io
import json
import pathlib
import sys
import tarfile


def main():
    image, root = map(pathlib.Path, sys.argv[1:])
    layout = pathlib.Path(f"{root}.layout")
    with tarfile.open(image) as archive:
        archive.extractall(layout, filter="data")
    seen = set()

    def blob(descriptor):
        kind, digest = descriptor["digest"].split(":")
        content = (layout / "blobs" / kind / digest).read_bytes()
        assert hashlib.new(kind, content).hexdigest() == digest, f"{digest} is not the blob's digest"
        assert len(content) == descriptor["size"], f"{digest} has another size"
        seen.add(digest)
        return content

    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
    assert entry["platform"]["os"] == "linux"
    manifest = json.loads(blob(entry))
    assert manifest["schemaVersion"] == 2 and manifest["mediaType"] == entry["mediaType"]
    config = json.loads(blob(manifest["config"]))
    layers = [gzip.decompress(blob(layer)) for layer in manifest["layers"]]
    assert [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers] == config["rootfs"]["diff_ids"]
    assert seen == {path.name for path in (layout / "blobs/sha256").iterdir()}, "a blob belongs to nothing"
    health = config["config"]["Healthcheck"]
    assert health["Test"] == ["CMD", "/usr/bin/helenus", "health"] and health["Retries"] > 0
    assert config["config"]["User"] != "0", "it runs as root"
    assert config["config"]["Entrypoint"] == ["/usr/bin/helenus"]
    root.mkdir()
    for layer in layers:
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            # Trusted: this project has just made it. Owners are kept where this runs as root.
            archive.extractall(root, filter="fully_trusted", numeric_owner=True)
    environment = pathlib.Path(f"{root}.env")
    environment.write_text("".join(f"{line}\n" for line in config["config"]["Env"]))
    size = sum(path.stat().st_size for path in (layout / "blobs/sha256").iterdir())
    print(f"image: {len(layers)} layer, {size} bytes, {len(seen)} digests right")


if __name__ == "__main__":
    main()
