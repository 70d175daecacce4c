// Has the official TypeScript SDK's clients do on a server what a model's client does, and prints a line a check:
// the first generation of the SDK for the sessions era, the second for the stateless one.
//
//   node drive.mjs --transport stdio|http|sse --protocol VERSION --matches N [--url URL --token T] [-- command …]
import { parseArgs } from 'node:util';
import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import * as v1stdio from '@modelcontextprotocol/sdk/client/stdio.js';
import * as v1http from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as v1sse from '@modelcontextprotocol/sdk/client/sse.js';
import * as v2 from '@modelcontextprotocol/client';
import * as v2stdio from '@modelcontextprotocol/client/stdio';

const { values: o, positionals: command } = parseArgs({
  allowPositionals: true,
  options: {
    transport: { type: 'string', default: 'stdio' }, protocol: { type: 'string', default: '2025-11-25' },
    url: { type: 'string' }, token: { type: 'string', default: '' },
    matches: { type: 'string' },
  },
});
const modern = o.protocol >= '2026-07-28';
const sdk = modern
  ? { Client: v2.Client, Stdio: v2stdio.StdioClientTransport, HTTP: v2.StreamableHTTPClientTransport, SSE: v2.SSEClientTransport }
  : { Client: v1.Client, Stdio: v1stdio.StdioClientTransport, HTTP: v1http.StreamableHTTPClientTransport, SSE: v1sse.SSEClientTransport };

function way() {
  const headers = o.token ? { Authorization: `Bearer ${o.token}` } : {};
  switch (o.transport) {
    case 'stdio': return new sdk.Stdio({ command: command[0], args: command.slice(1), env: process.env, stderr: 'inherit' });
    case 'http': return new sdk.HTTP(new URL(o.url), { requestInit: { headers } });
    case 'sse': return new sdk.SSE(new URL(o.url), { requestInit: { headers } });
  }
  throw new Error(`no transport ${o.transport}`);
}

const client = new sdk.Client({ name: 'drive', version: '1' },
  modern ? { capabilities: {}, versionNegotiation: { mode: { pin: o.protocol } } } : { capabilities: {} });

let failed = 0;
async function check(name, of) {
  const label = `typescript-sdk ${o.transport} ${o.protocol} ${name}:`;
  try {
    const late = new Promise((_, no) => setTimeout(() => no(new Error('nothing within 20 s')), 20_000).unref());
    console.log('ok', label, String(await Promise.race([of(), late]) ?? '').trim());
  } catch (e) {
    failed++;
    console.log('not ok', label, e?.stack ?? e);
  }
}
const must = (is, ...words) => { if (!is) throw new Error(words.map((w) => (typeof w === 'string' ? w : JSON.stringify(w))).join(' ')); };
const textOf = (r) => (r.content ?? []).map((c) => c.text ?? '').join('\n');
const sleep = (ms) => new Promise((yes) => setTimeout(yes, ms));

async function call(name, args, options) {
  const r = await client.callTool({ name, arguments: args }, ...(modern ? [options] : [undefined, options]));
  must(!r.isError, textOf(r));
  return textOf(r);
}

// A place is free a moment after an answer or a cancellation: until then the server is busy.
async function unlessBusy(name, args, options) {
  for (;;) {
    try {
      return await call(name, args, options);
    } catch (e) {
      if (!/busy/.test(e.message)) throw e;
      await sleep(10);
    }
  }
}

let kept = '';
const wire = []; // all that came, in order
await check('connect', async () => {
  const transport = way();
  await client.connect(transport);
  const take = transport.onmessage;
  transport.onmessage = (message, extra) => { wire.push(message); take(message, extra); };
  const info = client.getServerVersion();
  must(info?.name === 'mcp-funnel' && client.getInstructions(), 'the server says of itself', info, client.getInstructions());
  if (modern) must(client.getNegotiatedProtocolVersion() === o.protocol, 'the server chose', client.getNegotiatedProtocolVersion());
  return info.version;
});
await check('list', async () => {
  const names = (await client.listTools()).tools.map((t) => t.name);
  for (const want of ['search', 'find', 'read', 'grep', 'jq', 'slice']) must(names.includes(want), want, 'is not among', names);
  return names.join(', ');
});
await check('call', async () => {
  const text = await unlessBusy('read', { path: 'small.txt' });
  must(text.includes('the small file'), 'read says', text);
  return text;
});
await check('large receipt', async () => {
  const text = await unlessBusy('search', { pattern: 'needle' });
  kept = /^LARGE OUTPUT DETECTED: kept whole as obs:([0-9a-z]{12})\n/.exec(text)?.[1];
  must(kept && text.includes(`${o.matches} matches in`), `no receipt of ${o.matches} matches:`, text);
  return `obs:${kept}`;
});
await check('jq', async () => {
  const text = await unlessBusy('jq', { source: `obs:${kept}`, slurp: true, filter: 'length' });
  must(text.trim() === o.matches, 'jq counts', text, 'want', o.matches);
  return text;
});
await check('resource', async () => {
  const uri = `observation://${kept}`;
  let listed = false, cursor;
  do {
    const page = await client.listResources(cursor ? { cursor } : undefined);
    listed ||= page.resources.some((r) => r.uri === uri);
    cursor = page.nextCursor;
  } while (cursor);
  must(listed, uri, 'is not listed');
  const { contents } = await client.readResource({ uri: `${uri}/receipt` });
  must(contents.length === 1 && contents[0].text.startsWith('LARGE OUTPUT DETECTED'), 'the receipt reads', contents);
  return `${contents[0].text.length} chars`;
});
await check('progress', async () => {
  // Reading many files tells the first of them always. What comes in one piece with the answer the SDK's first
  // generation drops: so the wire is looked at, where all of it has to stand before the answer.
  wire.length = 0;
  await unlessBusy('read', { path: 'many/*.txt' }, { onprogress: () => {} });
  const notes = wire.filter((m) => m.method === 'notifications/progress').map((m) => m.params);
  const token = notes[0]?.progressToken;
  const answer = wire.findIndex((m) => m.id === token && m.result);
  const late = wire.slice(answer).some((m) => m.method === 'notifications/progress');
  must(notes.length > 0 && answer > 0 && !late && notes.every((n) => n.progressToken === token), 'what came:', wire);
  const told = notes.map((n) => n.progress);
  must(notes.every((n, i) => (i === 0 || n.progress > told[i - 1]) && !(n.total < n.progress)), 'progress went', notes);
  return told;
});
await check('cancel', async () => {
  // Only one call is let in at once (--max-calls 1): if the endless one went on, there would be no room for the next.
  const stop = new AbortController();
  setTimeout(() => stop.abort('enough'), 300);
  const ended = await unlessBusy('jq', { source: 'small.json', filter: 'last(range(1e12))' }, { signal: stop.signal }).then((t) => `an answer: ${t}`, () => '');
  must(stop.signal.aborted && !ended, 'the endless call ended with', ended || 'an error before it was cancelled');
  const began = performance.now();
  await unlessBusy('read', { path: 'small.txt' });
  return `room again after ${Math.round(performance.now() - began)} ms`;
});
await check('bad call', async () => {
  const outside = await unlessBusy('read', { path: '../outside' }).then((t) => t, () => '');
  must(!outside, 'a path outside the roots was read:', outside);
  const stranger = await client.callTool({ name: 'no such tool', arguments: {} }).then((r) => !r.isError, () => false);
  must(!stranger, 'a tool that is not there was called');
  await unlessBusy('read', { path: 'small.txt' });
});
await check('close', () => client.close());
process.exit(failed ? 1 : 0);
