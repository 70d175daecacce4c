// Shows pages inside a client that renders MCP Apps: JSON-RPC messages to and from the parent take the place of HTTP.
(() => {
  const root = document.documentElement, main = document.getElementById('main'), host = window.parent;
  const open = new Map(), trail = [], back = Object.assign(document.createElement('button'), { textContent: 'Back' });
  let last = 0, turn = 0, here = '', most = 640; // pixels that the frame is high unless the client says more
  const send = (m) => host.postMessage({ jsonrpc: '2.0', ...m }, '*'); // it has nothing of what pages hold
  const ask = (method, params) => new Promise((...end) => { open.set(++last, end); send({ id: last, method, params }); });
  const say = (text) => main.replaceChildren(Object.assign(document.createElement('p'), { textContent: text }));
  const load = async (mine) => {
    const [page, hash] = here.split('#');
    const r = await ask('tools/call', { name: 'funnel_view', arguments: { page } });
    if (mine !== turn) return; // another page was asked for meanwhile
    const html = r._meta?.['funnel/page']?.html;
    if (!html) throw new Error('it passes no pages on: mcp-funnel view shows them in a browser');
    const next = new DOMParser().parseFromString(html, 'text/html'), body = next.getElementById('main');
    // What changes something is for browsers.
    for (const e of body.querySelectorAll('form[method=post], a[download]')) e.remove();
    document.querySelector('header nav').replaceWith(next.querySelector('header nav'));
    main.replaceChildren(...body.childNodes);
    main.dispatchEvent(new Event('shown'));
    if (hash) document.getElementById(hash)?.scrollIntoView();
    const again = () => {
      if (mine !== turn) return;
      if (main.contains(document.activeElement) && document.activeElement !== main) setTimeout(again, 500); // it is used
      else show(here, trail);
    };
    if (body.hasAttribute('data-wait')) setTimeout(again, 500);
  };
  const show = (page, left = here ? [...trail, here] : []) => {
    trail.splice(0, trail.length, ...left);
    back.hidden = !trail.length;
    if (page !== here) scrollTo(0, 0);
    here = page;
    load(++turn).catch((e) => say(`The client shows no page: ${e.message}.`));
  };
  back.hidden = true;
  back.onclick = () => show(trail.at(-1), trail.slice(0, -1));
  document.querySelector('header').prepend(back);
  addEventListener('click', (e) => {
    const to = e.target.closest('a')?.getAttribute('href'), button = e.target.closest('form button');
    if (to?.startsWith('/view')) show(to);
    else if (to?.startsWith('#')) document.getElementById(to.slice(1))?.focus();
    else if (to) ask('ui/open-link', { url: to }).catch((e) => say(`The client does not open ${to}: ${e.message}.`));
    else if (button?.closest('dialog')) button.closest('dialog').close();
    // A sandbox without forms sends no submit event; Enter in a field clicks the button too.
    else if (button) show(`${button.form.getAttribute('action')}?${new URLSearchParams(new FormData(button.form))}`);
    else return;
    e.preventDefault();
  });
  const schemes = [...document.styleSheets[0].cssRules].filter((r) => r.media?.mediaText.includes('prefers-color-scheme'));
  const context = ({ theme, containerDimensions: size }) => {
    most = size?.height ?? size?.maxHeight ?? most;
    if (!theme) return;
    root.style.colorScheme = theme;
    for (const r of schemes) r.media.mediaText = theme === 'dark' ? 'all' : 'not all';
  };
  const events = {
    'ui/notifications/tool-result': (r) => {
      const kept = [r._meta?.['funnel/receipt'] ?? []].flat().find((one) => one.observation_id);
      if (kept) show(`obs/${kept.observation_id}`); else say('Nothing of this answer was stored.');
    },
    'ui/notifications/tool-cancelled': () => say('The call was cancelled.'),
    'ui/notifications/host-context-changed': context, 'ui/resource-teardown': () => turn++, ping: () => {},
  };
  addEventListener('message', ({ source, data: m }) => {
    if (source !== host) return;
    const end = m.method ? null : open.get(m.id);
    open.delete(end && m.id);
    if (end) m.error ? end[1](new Error(m.error.message)) : end[0](m.result);
    events[m.method]?.(m.params ?? {});
    if (m.method && m.id !== undefined) send({ id: m.id, ...(events[m.method] ? { result: {} } : { error: { code: -32601, message: 'unknown method' } }) });
  });
  ask('ui/initialize', {
    protocolVersion: '2026-01-26', appInfo: { name: 'mcp-funnel', version: '1' },
    appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
  }).then((r) => {
    context(r.hostContext ?? {});
    send({ method: 'ui/notifications/initialized' });
    new ResizeObserver(() => send({ method: 'ui/notifications/size-changed', params: {
      width: root.scrollWidth, height: Math.min(Math.ceil(root.getBoundingClientRect().height), most) } })).observe(root);
  });
})();
