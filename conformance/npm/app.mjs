// Shows the pages of a server as a client that renders MCP Apps does: by the host's half of the official SDK, in a
// sandboxed frame of a real browser. It prints what it saw as JSON.
//
//   node app.mjs CHROMIUM PROFILE PROTOCOL -- SERVER ARG…
import { chromium } from 'playwright-core';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import {
  AppBridge, RESOURCE_MIME_TYPE, getToolUiResourceUri, isToolVisibilityAppOnly,
} from '@modelcontextprotocol/ext-apps/app-bridge';

const [executablePath, profile, protocol, , command, ...args] = process.argv.slice(2);
const capabilities = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [RESOURCE_MIME_TYPE] } } };
const client = new Client({ name: 'app', version: '1' },
  { capabilities, ...(protocol >= '2026-07-28' ? { versionNegotiation: { mode: { pin: protocol } } } : {}) });
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' }));
const { tools } = await client.listTools();
const search = tools.find((t) => t.name === 'search');
const { contents: [document] } = await client.readResource({ uri: getToolUiResourceUri(search) });

const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, chromiumSandbox: false, timeout: 120_000, viewport: { width: 900, height: 700 },
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
});
// What the specification tells hosts to set for a resource, by the domains that it declares.
const { csp } = document._meta.ui;
const from = csp.resourceDomains.join(' '), to = csp.connectDomains.join(' ');
const policy = `default-src 'none'; script-src 'self' 'unsafe-inline' ${from};` +
  ` style-src 'self' 'unsafe-inline' ${from}; img-src 'self' data: ${from}; connect-src 'self' ${to}; frame-src 'none'; object-src 'none'`;

// open shows the document in a frame, and what the tool answered in it. Without a guard, the frame may do all.
async function open(answer, guarded, oncalltool) {
  const page = await context.newPage();
  const seen = { requests: [], errors: [], dialogs: 0, sizes: [], links: [], calls: [] };
  page.on('dialog', (d) => { seen.dialogs++; d.dismiss(); });
  page.on('pageerror', (e) => seen.errors.push(e.message));
  page.on('console', (m) => m.type() === 'error' && seen.errors.push(m.text()));
  await page.route('**', (route) => {
    const url = route.request().url(), contentType = 'text/html';
    if (url === 'http://host.example/') return route.fulfill({ contentType, body: '<!doctype html><title>x</title>' });
    if (url === 'http://frame.example/') {
      const headers = guarded ? { 'Content-Security-Policy': policy } : {};
      return route.fulfill({ contentType, body: document.text, headers });
    }
    seen.requests.push(url);
    return route.abort();
  });
  const transport = {
    start: async () => {}, close: async () => {},
    send: (m) => page.evaluate((m) => window.frame.contentWindow.postMessage(m, '*'), m),
  };
  await page.exposeBinding('toHost', (_, m) => transport.onmessage?.(m));
  await page.goto('http://host.example/');
  const bridge = new AppBridge(client, { name: 'host', version: '1' }, { openLinks: {}, serverTools: {} },
    { hostContext: { theme: 'dark', containerDimensions: { maxHeight: 500 } } });
  const ready = new Promise((yes) => { bridge.oninitialized = yes; });
  bridge.onsizechange = (s) => seen.sizes.push(s);
  bridge.onopenlink = async ({ url }) => { seen.links.push(url); return {}; };
  await bridge.connect(transport);
  bridge.oncalltool = async (params) => {
    seen.calls.push(params.arguments.page);
    return oncalltool ? oncalltool(params) : client.callTool(params);
  };
  await page.evaluate(() => {
    window.frame = document.createElement('iframe');
    window.frame.sandbox = 'allow-scripts'; // a host may allow more: forms, and an origin
    window.frame.width = 900;
    window.frame.height = 500;
    addEventListener('message', (e) => { if (e.source === window.frame.contentWindow) window.toHost(e.data); });
    window.frame.src = 'http://frame.example/';
    document.body.append(window.frame);
  });
  await ready;
  await bridge.sendToolInput({ arguments: {} });
  await bridge.sendToolResult(answer);
  return { page, bridge, seen, view: page.frames().find((f) => f.url() === 'http://frame.example/') };
}

const report = { mimeType: document.mimeType };
report.tools = tools.map((t) => ({ name: t.name, ui: getToolUiResourceUri(t), appOnly: isToolVisibilityAppOnly(t) }));
const answer = await client.callTool({ name: 'search', arguments: { pattern: 'needle' } });
report.shown = answer.content[0].text;

const app = await open(answer, true);
const text = () => app.view.locator('#main').innerText();
const until = (words) => app.view.locator('#main', { hasText: words }).waitFor({ timeout: 20_000 });
await app.view.locator('#main .tree, #main .text').first().waitFor({ timeout: 20_000 });
report.first = await text();
report.dark = await app.view.evaluate(() => getComputedStyle(document.body).backgroundColor);
report.picture = (await app.page.screenshot()).toString('base64');
await app.view.locator('a', { hasText: /^text$/ }).click();
await until('lines 1–');
await app.view.locator('a[rel=next]').first().click();
await until('lines 101–');
report.second = await text();
await app.view.locator('button', { hasText: 'Back' }).click();
await until('lines 1–');
await app.view.locator('input[name=grep]').fill('needle 2999');
await app.view.locator('input[name=grep]').press('Enter');
await until('Answer of grep');
report.answer = await app.view.locator('#answer').innerText();
await app.view.evaluate(() => {
  const a = document.createElement('a');
  Object.assign(a, { href: 'https://outside.example/', id: 'outside', textContent: 'x' });
  document.getElementById('main').append(a);
});
await app.view.locator('#outside').click();
await app.bridge.setHostContext({ theme: 'light', containerDimensions: { maxHeight: 500 } });
const light = () => getComputedStyle(document.body).backgroundColor === 'rgb(255, 255, 255)';
await app.view.waitForFunction(light, null, { timeout: 20_000 });
report.ran = await app.view.evaluate(() => window.ran ?? 0);
await app.bridge.teardownResource({});
Object.assign(report, app.seen);
await app.page.close();

// The answer of a call of which nothing is stored.
const small = await open(await client.callTool({ name: 'search', arguments: { pattern: 'nowhere at all' } }), true);
await small.view.locator('#main', { hasText: 'Nothing of this answer was stored.' }).waitFor({ timeout: 20_000 });
report.small = small.seen.calls;
await small.page.close();

// The control: a page that is not escaped, without the host's policy, runs and asks for something.
const html = '<header><nav></nav></header>' +
  '<main id="main"><img src="http://evil.example/x" onerror="window.ran = 1"></main>';
const open_ = await open(answer, false, () => ({ content: [], _meta: { 'funnel/page': { html } } }));
await open_.view.waitForFunction(() => window.ran === 1, null, { timeout: 20_000 });
report.control = open_.seen.requests;
await context.close();
await client.close();
console.log(JSON.stringify(report));
