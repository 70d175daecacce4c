// Shows pages inside a client that renders MCP Apps: JSON-RPC messages to and from the parent take the place of HTTP.
(() => {
  const root = document.documentElement, main = document.getElementById('main'), host = window.parent, open = new Map();
  const back = Object.assign(document.createElement('button'), { textContent: 'Back', hidden: true });
  let last = 0, turn = 0, here = '', trail = [], most = 640; // pixels of height, unless the client says another limit
  const send = (m) => host.postMessage({ jsonrpc: '2.0', ...m }, '*'); // it has nothing of what pages hold
  const ask = (method, params) => new Promise((...end) => open.set(++last, end) && send({ id: last, method, params }));
  const say = (text) => main.replaceChildren(Object.assign(document.createElement('p'), { textContent: text }));
  const load = async (mine) => {
    const [page, hash] = here.split('#');
    const html = (await ask('tools/call', { name: 'funnel_view', arguments: { page } }))._meta?.['funnel/page']?.html;
    if (mine !== turn) return; // another page was asked for meanwhile
    if (!html) throw new Error('it passes none on; mcp-funnel view shows them in a browser');
    const next = new DOMParser().parseFromString(html, 'text/html'), body = next.getElementById('main');
    for (const e of body.querySelectorAll('form[method=post], a[download]')) e.remove(); // changes are for browsers
    document.querySelector('header nav').replaceWith(next.querySelector('header nav'));
    main.replaceChildren(...body.childNodes);
    main.dispatchEvent(new Event('shown'));
    if (hash) scrollBy(0, document.getElementById(hash)?.getBoundingClientRect().top ?? 0);
    here = page;
    const again = () => mine === turn && (main.matches(':focus-within') ? setTimeout(again, 500) : show(page, trail));
    if (body.hasAttribute('data-wait')) setTimeout(again, 500);
  };
  const show = (page, before = here ? [...trail, here] : trail) => {
    if (page !== here) scrollTo(0, 0);
    [here, trail, back.hidden] = [page, before, !before.length];
    const mine = ++turn;
    load(mine).catch((e) => mine === turn && say(`The client shows no page: ${e.message}.`));
  };
  document.querySelector('header').prepend(back);
  back.onclick = () => show(trail.at(-1), trail.slice(0, -1));
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
  const schemes = [...document.styleSheets[0].cssRules].filter((r) => r.media?.mediaText.includes('color-scheme'));
  const context = ({ theme, containerDimensions: size }) => {
    most = size?.height ?? size?.maxHeight ?? most;
    if (theme) for (const r of schemes) r.media.mediaText = theme === 'dark' ? 'all' : 'not all';
    root.style.colorScheme = theme ?? root.style.colorScheme;
  };
  addEventListener('message', ({ source, data: m }) => {
    if (source !== host) return;
    const [yes, no] = (!m.method && open.get(m.id)) || [], kept = [m.params?._meta?.['funnel/receipt'] ?? []].flat();
    const id = kept.find((one) => one.observation_id)?.observation_id;
    if (yes) m.error ? no(new Error(m.error.message)) : yes(m.result);
    if (m.method?.endsWith('/tool-result')) id ? show(`obs/${id}#content`) : say('Nothing of this answer was stored.');
    if (m.method?.endsWith('/tool-cancelled')) say('The call was cancelled.');
    if (m.method?.endsWith('/host-context-changed')) context(m.params);
    if (m.method && m.id !== undefined) send({ id: m.id, result: {} }); // hosts ask for teardown and ping
  });
  ask('ui/initialize', {
    protocolVersion: '2026-01-26', appInfo: { name: 'mcp-funnel', version: '1' },
    appCapabilities: { availableDisplayModes: ['inline', 'fullscreen'] },
  }).then((r) => {
    context(r.hostContext ?? {});
    send({ method: 'ui/notifications/initialized' });
    new ResizeObserver(() => send({ method: 'ui/notifications/size-changed', params: {
      width: root.scrollWidth, height: Math.min(Math.ceil(root.getBoundingClientRect().height), most),
    } })).observe(root);
  });
})();
