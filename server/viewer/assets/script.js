'use strict';
(() => {
  const main = document.getElementById('main');
  const rows = () => [...main.querySelectorAll('tbody tr, .tree li')].filter((r) => r.offsetParent);
  let at = -1;
  const go = (by) => {
    const all = rows();
    all[at]?.classList.remove('at');
    at = Math.max(0, Math.min(all.length - 1, at + by));
    all[at]?.classList.add('at');
    all[at]?.scrollIntoView({ block: 'nearest' });
  };
  addEventListener('keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || /INPUT|SELECT|TEXTAREA/.test(e.target.tagName)) return;
    const press = (where) => main.querySelector(where)?.click();
    const keys = {
      j: () => go(1), k: () => go(-1), n: () => press('a[rel=next]'), p: () => press('a[rel=prev]'),
      Enter: () => { if (document.activeElement === document.body || document.activeElement === main) rows()[at]?.querySelector('a')?.click(); },
      '/': () => document.querySelector('header input')?.focus(), '?': () => document.getElementById('help').showModal(),
    };
    if (keys[e.key]) { keys[e.key](); if (e.key !== 'Enter') e.preventDefault(); }
  });
  const ready = () => {
    for (const t of main.querySelectorAll('time')) t.textContent = new Date(t.dateTime).toLocaleString();
    for (const b of main.querySelectorAll('.copy')) { b.hidden = !navigator.clipboard; b.onclick = () => navigator.clipboard.writeText(b.dataset.copy); }
  };
  ready();
  main.addEventListener('shown', ready); // app.js has replaced what main holds
  const again = async () => {
    const r = await fetch(location.href, { credentials: 'same-origin' });
    const next = new DOMParser().parseFromString(await r.text(), 'text/html').getElementById('main');
    if (!next || main.contains(document.activeElement) && document.activeElement !== main) return next;
    main.replaceChildren(...next.childNodes);
    main.toggleAttribute('data-wait', next.hasAttribute('data-wait'));
    ready();
    return next;
  };
  const wait = async (next) => { if (next?.hasAttribute('data-wait')) setTimeout(async () => wait(await again()), 500); };
  wait(main);
  if (main.dataset.live) {
    let first = true;
    new EventSource(main.dataset.live).onmessage = () => { if (!first) again(); first = false; };
  }
})();
