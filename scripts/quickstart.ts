// Sets up the machine and runs the example suite on it: needs no key, no model and no service.

import { runScript } from './run-script.ts';
import { runTool } from './run-tool.ts';
import { setUp } from './set-up/set-up.ts';

await runScript(async (signal) => {
  console.log(
    'Offsite quickstart: find or install a Docker engine, make the base image, run the example suite.\n',
  );
  await setUp(process.env, signal);
  console.log('');
  const args = ['bin/offsite.mjs', 'quickstart', ...process.argv.slice(2)];
  const exitCode = await runTool(process.execPath, args, signal);
  if (exitCode !== 0) return exitCode;
  console.log('\nIn this checkout, `offsite` is `npm run -s offsite --`. What to read next: README.md.');
  return 0;
});
