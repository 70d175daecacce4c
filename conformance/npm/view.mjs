// Opens pages of the viewer in a real browser and prints what was seen of each as JSON lines.
//
//   node view.mjs CHROMIUM '{"enter": "URL with a code", "pages": [{"name": "…", "path": "/view/…"}], "variants": […], "shots": "DIR", "axe": true}'
//
// With "base" instead of "enter", the URL of a directory of files, paths are relative to it, and nobody signs in. A
// variant may have "keys" that are pressed; "text:…" is typed, "wait:SELECTOR" waits until that is visible, "url:END"
// until the address ends so. "focus" is the text of what has the focus then.
//
// A variant is {"name", "width", "dark", "zoom", "scripts", "every"}: every second, third … page. A line has: page, variant, status, console (errors), failed (page errors), foreign (requests to
// another origin), ran (whether a script of the content ran), axe (violations), wide (pixels that the page is too wide), paint (ms
// until the first content is painted), heap (bytes), bytes.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const [executablePath, order] = process.argv.slice(2);
const { enter, base, pages, variants, shots, axe } = JSON.parse(order);
const axeSource = axe ? readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8') : '';
const origin = base || new URL(enter).origin;
const browser = await chromium.launch({ executablePath, headless: true, chromiumSandbox: false, timeout: 120_000, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--force-color-profile=srgb', '--font-render-hinting=none', '--enable-precise-memory-info'] });

// The cookie of one context is that of all: the code works once.
let cookies = [];
if (enter) {
  const first = await browser.newContext();
  const door = await first.newPage();
  await door.goto(enter);
  await door.waitForURL((u) => !u.searchParams.has('code'), { timeout: 30_000 });
  cookies = await first.cookies();
  await first.close();
}

for (const v of variants) {
  const context = await browser.newContext({
    viewport: { width: v.width || 1200, height: 900 }, colorScheme: v.dark ? 'dark' : 'light', javaScriptEnabled: v.scripts !== false, timezoneId: 'UTC', locale: 'en-GB',
    deviceScaleFactor: v.zoom || 1,
  });
  await context.addCookies(cookies);
  const page = await context.newPage();
  let seen;
  page.on('console', (m) => { if (m.type() === 'error' || m.type() === 'warning') seen.console.push(m.text()); });
  page.on('pageerror', (e) => seen.failed.push(e.message));
  page.on('request', (r) => { if (!r.url().startsWith(base || `${origin}/view`) && !r.url().startsWith('data:,')) seen.foreign.push(r.url().slice(0, 200)); });
  page.on('dialog', (d) => { seen.dialogs++; d.dismiss(); });
  for (const { name, path } of pages.filter((_, i) => i % (v.every || 1) === 0)) {
    seen = { page: name, variant: v.name, console: [], failed: [], foreign: [], dialogs: 0 };
    const answer = await page.goto(new URL(path, origin).href, { waitUntil: 'load', timeout: 60_000 });
    seen.status = answer.status();
    seen.bytes = await answer.body().then((b) => b.length, () => 0);
    await new Promise((yes) => setTimeout(yes, 20)); // what runs after the page was loaded
    if (new URL(page.url()).host !== new URL(path, origin).host) {
      seen.ran = true; // the content has led elsewhere
    } else if (v.scripts !== false) {
      // What is read in the background is loaded again by the page itself.
      await page.waitForFunction(() => !document.querySelector('main[data-wait]'), null, { timeout: 60_000 }).catch(() => seen.failed.push('the page goes on waiting'));
      if (axe && !v.width) {
        await page.evaluate(axeSource);
        const found = await page.evaluate((dark) => window.axe.run(document, { preload: location.protocol !== 'file:', runOnly: dark ? { type: 'rule', values: ['color-contrast'] } : ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }), Boolean(v.dark));
        seen.axe = found.violations.map((x) => `${x.id}: ${x.nodes[0].html.slice(0, 200)} (${x.nodes.length})`);
      }
      for (const key of v.keys ?? []) {
        const [, what, rest] = key.match(/^(text|wait|url):(.*)$/) ?? [];
        const done = what === 'text' ? page.keyboard.type(rest)
          : what === 'wait' ? page.locator(rest).first().waitFor({ timeout: 60_000 })
            : what === 'url' ? page.waitForURL((u) => u.href.endsWith(rest), { timeout: 60_000 })
              : page.keyboard.press(key);
        await done.catch((e) => seen.failed.push(`${key}: ${page.url()}: ${e.message.split('\n')[0]}`));
      }
      if (v.keys) seen.focus = await page.evaluate(() => document.activeElement.textContent.slice(0, 200));
      seen.ran = await page.evaluate(() => Boolean(window.ran)).catch(() => true);
      seen.paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0);
      seen.heap = await page.evaluate(() => performance.memory.usedJSHeapSize);
      seen.wide = await page.evaluate(() => Math.max(0, document.documentElement.scrollWidth - innerWidth));
      // What differs from run to run is not compared.
      await page.evaluate(() => {
        for (const t of document.querySelectorAll('time')) t.textContent = '29/11/2026, 08:00:00';
        const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walk.nextNode()) walk.currentNode.data = walk.currentNode.data.replace(/\b[0-9a-hjkmnp-tv-z]{12}\b/g, 'xxxxxxxxxxxx');
      });
    } else {
      seen.ran = false;
      seen.text = (await page.locator('main').innerText()).slice(0, 2000);
    }
    if (shots && v.scripts !== false && !v.zoom) await page.screenshot({ path: `${shots}/${name}-${v.name}.png` });
    console.log(JSON.stringify(seen));
  }
  await context.close();
}
await browser.close();
