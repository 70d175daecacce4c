// Finds sections, [address, page, heading], by their words. Pages of file:// may not fetch: the index is a script.
const root = new URL('.', document.currentScript.src);
const [form, box, found, contents] = ['form', '#words', '#found', '#contents'].map((s) => document.querySelector(s));
const wordsOf = (s) => s.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean);
const make = (name, properties) => Object.assign(document.createElement(name), properties);

// find returns the sections that have all words, or words that begin so, the best first.
function find({ sections, words }, asked) {
  let scores = new Map(sections.map((_, s) => [s, 0]));
  for (const word of asked) {
    const now = new Map();
    for (const name of Object.keys(words).filter((n) => n.startsWith(word))) {
      for (const s of words[name].filter((s) => scores.has(s))) {
        const [page, heading] = sections[s].slice(1).map((t) => wordsOf(t).includes(name));
        now.set(s, Math.max(now.get(s) ?? 0, scores.get(s) + (name === word) + 4 * page + 8 * heading));
      }
    }
    scores = now;
  }
  return [...scores.keys()].sort((a, b) => scores.get(b) - scores.get(a) || a - b).map((s) => sections[s]);
}

function show() {
  const asked = wordsOf(box.value), all = asked.length && window.searchIndex ? find(searchIndex, asked) : [];
  found.hidden = !asked.length || !window.searchIndex;
  found.firstChild.textContent = `${all.length > 12 ? '12 of ' : ''}${all.length} sections`;
  found.lastChild.replaceChildren(...all.slice(0, 12).map(([address, page, heading]) => {
    const item = make('li', { textContent: page === heading ? '' : ` ${page}` });
    item.prepend(make('a', { href: new URL(address, root), textContent: heading }));
    return item;
  }));
}

form.hidden = false;
form.onsubmit = (e) => { e.preventDefault(); found.querySelector('a')?.click(); };
box.oninput = show;
box.onfocus = () => window.searchIndex ?? document.head.append(make('script', { src: new URL('index.js', root), onload: show }));
onclick = (e) => {
  if (!form.contains(e.target) || e.target.closest('a')) found.hidden = true;
  if (contents.contains(e.target)) contents.hidePopover();
};
onkeydown = (e) => {
  if (e.key === 'Escape') found.hidden = true;
  if (e.key === '/' && e.target !== box) { e.preventDefault(); box.focus(); }
};
