// container.js PORT NAME: makes a container in Azurite, whose account and key are published.
const crypto = require("crypto");
const http = require("http");
const [port, name] = process.argv.slice(2);
const account = "devstoreaccount1";
const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-12-02" };
const signed = ["PUT", ...Array(11).fill(""), `x-ms-date:${headers["x-ms-date"]}`, `x-ms-version:${headers["x-ms-version"]}`,
  `/${account}/${account}/${name}`, "restype:container"].join("\n");
const signature = crypto.createHmac("sha256", Buffer.from(key, "base64")).update(signed, "utf8").digest("base64");
headers.Authorization = `SharedKey ${account}:${signature}`;
headers["Content-Length"] = 0;
const request = http.request({ port, method: "PUT", host: "127.0.0.1", path: `/${account}/${name}?restype=container`, headers }, (answer) => {
  answer.resume();
  if (answer.statusCode !== 201) {
    console.error(`Azurite answered ${answer.statusCode}`);
    process.exitCode = 1;
  }
});
request.end();
