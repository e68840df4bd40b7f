// The long form of test/hostile: every attack and every honest agent of examples/hostile on a real engine,
// and a table of the results; then the tests of test/hostile. Arguments select suites, such as `escape leak`;
// with any, the tests are left out.

import { OffsiteError } from '../src/base/offsite-error.ts';
import { hostileSuites } from '../src/doctor/deep/conformance.ts';
import { runHostile } from '../src/doctor/deep/look-deep.ts';
import { printedHostile } from '../src/doctor/deep/outcome.ts';
import { unmetWishes } from '../src/engine/capabilities.ts';
import { plainText } from '../src/text/output.ts';
import { plural } from '../src/text/quantities.ts';
import { runScript } from './run-script.ts';
import { runTool } from './run-tool.ts';
import { setUp } from './set-up/set-up.ts';

await runScript(async (signal) => {
  const named: string[] = process.argv.slice(2);
  const unknown = named.filter((name) => !hostileSuites.some((suite) => suite === name));
  if (unknown.length > 0) throw unknownSuites(unknown);
  const capabilities = await setUp(process.env, signal);
  const testsExitCode = named.length > 0 ? 0 : await runTool('vitest', ['run', 'test/hostile'], signal);
  const report = await runHostile({
    chosen: ({ suite }) => named.length === 0 || named.includes(suite),
    used: {
      runtime: undefined,
      name: capabilities.defaultRuntime,
      mayLackFilter: unmetWishes({}, capabilities).length > 0,
    },
    env: process.env,
    engine: undefined,
    signal,
    onSuite: (suite, attacks) => console.log(`${suite}: ${plural(attacks, 'case')}`),
  });
  console.log(`\n${plainText(printedHostile(report))}`);
  return report.held && testsExitCode === 0 ? 0 : 1;
});

function unknownSuites(names: readonly string[]): OffsiteError {
  return new OffsiteError(`there is no hostile suite ${names.join(', ')}`, {
    code: 'SUITE_UNKNOWN',
    kind: 'input',
    hint: `There are ${hostileSuites.join(', ')}.`,
  });
}
