// Shows pages inside a client that renders MCP Apps. Requests and answers are JSON-RPC messages to and from the parent.
(() => {
  const root = document.documentElement, main = document.getElementById('main'), host = window.parent;
  if (host === window) return;
  const open = new Map(), trail = [];
  let last = 0, here = '', turn = 0, most = 640;
  const send = (message) => host.postMessage({ jsonrpc: '2.0', ...message }, '*'); // no content of pages is in them
  const ask = (method, params) => new Promise((yes, no) => { open.set(++last, { yes, no }); send({ id: last, method, params }); });
  const say = (text) => { const p = document.createElement('p'); p.className = 'note'; p.textContent = text; main.replaceChildren(p); };
  const back = document.createElement('button');
  back.textContent = 'Back';
  back.hidden = true;
  back.onclick = () => show(trail.pop(), true);
  document.querySelector('header').prepend(back);

  const load = async (page, mine) => {
    const [path, hash] = page.split('#');
    const r = await ask('tools/call', { name: 'funnel_view', arguments: { page: path } });
    if (mine !== turn) return; // another page was asked for meanwhile
    const html = r._meta?.['funnel/page']?.html;
    if (!html) return say('This client does not pass pages on: mcp-funnel view shows them in a browser.');
    const next = new DOMParser().parseFromString(html, 'text/html'), body = next.getElementById('main');
    body.querySelectorAll('form[method=post], a[download]').forEach((e) => e.remove()); // what changes things is for browsers
    document.querySelector('header nav').replaceWith(next.querySelector('header nav'));
    main.replaceChildren(...body.childNodes);
    main.dispatchEvent(new Event('shown'));
    if (hash) document.getElementById(hash)?.scrollIntoView();
    const again = () => (mine !== turn ? 0 : main.contains(document.activeElement) && document.activeElement !== main
      ? setTimeout(again, 500) : load(page, mine).catch((e) => say(e.message)));
    if (body.hasAttribute('data-wait')) setTimeout(again, 500);
  };
  const show = (page, returns) => {
    if (here && !returns) trail.push(here);
    back.hidden = !trail.length;
    here = page;
    return load(page, ++turn).then(() => !page.includes('#') && scrollTo(0, 0), (e) => say(e.message));
  };

  const follow = (e) => {
    const a = e.target.closest('a'), button = e.target.closest('form button'), to = a?.getAttribute('href');
    if (to?.startsWith('/view')) show(to);
    else if (to?.startsWith('#')) document.getElementById(to.slice(1))?.focus();
    else if (to) ask('ui/open-link', { url: to }).catch((e) => say(`${to} was not opened: ${e.message}`));
    else if (button?.form.method === 'dialog') button.closest('dialog').close();
    // Not on submit: a sandbox that forbids forms sends no such event. Enter in a field clicks the button too.
    else if (button) show(button.form.getAttribute('action') + '?' + new URLSearchParams(new FormData(button.form)));
    else return;
    e.preventDefault();
  };
  addEventListener('click', follow);
  addEventListener('auxclick', follow);

  const dark = [...document.styleSheets[0].cssRules].filter((r) => r.media?.mediaText.includes('prefers-color-scheme'));
  const context = (c = {}) => {
    most = c.containerDimensions?.height ?? c.containerDimensions?.maxHeight ?? most;
    if (!c.theme) return;
    root.style.colorScheme = c.theme;
    for (const r of dark) r.media.mediaText = c.theme === 'dark' ? 'all' : 'not all';
  };
  const result = (r) => {
    const kept = [r._meta?.['funnel/receipt'] ?? []].flat().find((one) => one.observation_id)?.observation_id;
    const id = (kept ?? r.content?.[0]?.text?.match(/^[A-Z ]+(?:: kept .*)? as (obs:\w{12})/)?.[1])?.replace('obs:', '');
    if (id) show(`obs/${id}`);
    else say('The answer is shown whole; nothing of it was stored.');
  };
  addEventListener('message', ({ source, data: m }) => {
    if (source !== host || m?.jsonrpc !== '2.0') return;
    const answered = m.method ? null : open.get(m.id);
    if (answered) {
      open.delete(m.id);
      if (m.error) answered.no(new Error(m.error.message)); else answered.yes(m.result);
    } else if (m.method === 'ui/notifications/tool-result') result(m.params);
    else if (m.method === 'ui/notifications/tool-cancelled') say('The call was cancelled.');
    else if (m.method === 'ui/notifications/host-context-changed') context(m.params);
    else if (m.method && m.id !== undefined) send({ id: m.id, ...(/^(ping|ui\/resource-teardown)$/.test(m.method) ? { result: {} } : { error: { code: -32601, message: `unknown method ${m.method}` } }) });
  });
  ask('ui/initialize', { protocolVersion: '2026-01-26', appInfo: { name: 'mcp-funnel', version: '1' }, appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] } })
    .then((r) => {
      context(r.hostContext);
      send({ method: 'ui/notifications/initialized' });
      new ResizeObserver(() => send({ method: 'ui/notifications/size-changed', params: {
        width: root.scrollWidth, height: Math.min(Math.ceil(root.getBoundingClientRect().height), most) } })).observe(root);
    }, (e) => say(e.message));
})();
