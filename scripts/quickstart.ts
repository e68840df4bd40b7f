// Sets up the machine and runs the example suite on it: needs no key, no model and no service.

import { runScript } from './run-script.ts';
import { runTool } from './run-tool.ts';
import { setUp } from './set-up/set-up.ts';

const suite = 'examples/quickstart/suite.yaml';

await runScript(async (signal) => {
  console.log('Offsite quickstart: find or install a Docker engine, make the base image, then run');
  console.log(`  offsite run ${suite}\n`);
  await setUp(process.env, signal);
  console.log('');
  const exitCode = await runTool(
    process.execPath,
    ['src/cli/main.ts', 'run', suite, ...process.argv.slice(2)],
    signal,
  );
  if (exitCode !== 0) return exitCode;
  console.log(`\nThe suite that ran is ${suite}; change it and run it again with`);
  console.log(`  npm run offsite -- run ${suite}`);
  console.log('All commands: npm run offsite -- --help. What to read next: README.md.');
  return 0;
});
