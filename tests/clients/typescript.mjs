// Takes the tour with a client written in TypeScript.
//
// Usage: node typescript.mjs CLIENT TRANSPORT ERA TARGET FOLDER, as for clients.py, where CLIENT is sdk (the package
// @modelcontextprotocol/sdk 1.x) or client (@modelcontextprotocol/client 2.x). The file is copied next to node_modules
// first. Prints the replies as JSON.

import { readFileSync } from "node:fs";

const [name, transport, era, target, folder] = process.argv.slice(2);
const steps = JSON.parse(readFileSync(new URL("./tour.json", import.meta.url), "utf8"));
const argumentsOfServer = ["--data-dir", `${folder}/library`, "serve", "--workspace", `${folder}/workspace`];
const info = { name: "tour", version: "1.0.0" };
const waiting = { timeout: 240_000 };

async function connect() {
  const stdio = { command: target, args: argumentsOfServer, env: { ...process.env, SHELF_LOG_LEVEL: "error" } };
  if (name === "sdk") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const client = new Client(info);
    await client.connect(
      transport === "stdio" ? new StdioClientTransport(stdio) : new StreamableHTTPClientTransport(new URL(target)),
    );
    return { client, call: (request) => client.callTool(request, undefined, waiting) };
  }
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  const mode = era === "legacy" ? "legacy" : { pin: "2026-07-28" };
  const client = new Client(info, { versionNegotiation: { mode } });
  await client.connect(
    transport === "stdio" ? new StdioClientTransport(stdio) : new StreamableHTTPClientTransport(new URL(target)),
  );
  return { client, call: (request) => client.callTool(request, waiting) };
}

function fill(value, saved) {
  if (typeof value === "string") return value.replace(/\$\{(\w+)\}/g, (_, word) => saved[word]);
  if (Array.isArray(value)) return value.map((item) => fill(item, saved));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, saved)]));
  }
  return value;
}

const { client, call } = await connect();
client.onerror = (error) => console.error(`client error: ${error.message}`);
await client.listTools();
const saved = { folder };
const replies = [];
for (const step of steps.filter((step) => (step.only ?? transport) === transport)) {
  const result = await call({ name: step.tool, arguments: fill(step.arguments, saved) });
  const text = result.content[0].text;
  const isError = result.isError === true;
  for (const [key, field] of Object.entries(step.save ?? {})) saved[key] = JSON.parse(text)[field];
  replies.push({ tool: step.tool, text, is_error: isError });
}
await client.close();
console.log(JSON.stringify(replies, null, 1));
process.exit(0);
