// Runs one scenario of the conformance suite many times in one process, since starting node takes longer than the
// scenario: the suite's own program is loaded anew each time, with the arguments of its command line.
//
//   node again.mjs TIMES SCENARIO URL
const [times, scenario, url] = process.argv.slice(2);
const program = import.meta.resolve('@modelcontextprotocol/conformance/dist/index.js').replace(/\?.*/, '');
const exit = process.exit;
const print = console.log;
let failed = 0;
for (let i = 1; i <= Number(times); i++) {
  process.argv = [process.argv[0], program, 'server', '--url', url, '--scenario', scenario];
  const said = [];
  console.log = console.error = (...words) => said.push(words.join(' '));
  const code = await new Promise((ended) => {
    process.exit = ended;
    import(`${program}?${i}`).catch((e) => { said.push(String(e?.stack ?? e)); ended(1); });
  });
  console.log = print;
  if (code !== 0 || !said.some((line) => /^Passed: 1\/1, 0 failed/.test(line))) {
    failed++;
    print(`run ${i} of ${times} of ${scenario} failed with ${code}:\n${said.join('\n')}`);
  }
}
print(`${scenario}: ${times - failed} of ${times} runs passed`);
exit(failed ? 1 : 0);
