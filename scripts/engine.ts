// Starts an engine for tests and leaves it running until Ctrl-C: `node scripts/engine.ts docker-28`. Tests
// and commands use it through the DOCKER_HOST that it prints. Without a name it lists the engines.

import { once } from 'node:events';
import { engineTable } from './engines/table.ts';
import { openNamed } from './engines/with-engine.ts';
import { runScript } from './run-script.ts';

await runScript(async (signal) => {
  const [name] = process.argv.slice(2);
  if (name === undefined) {
    for (const entry of engineTable) console.log(`${entry.name}: ${entry.title}`);
    return 0;
  }
  await using named = await openNamed(name, process.env, signal);
  const { host, socketPath, env = {} } = named.engine;
  const variables = { ...env, DOCKER_HOST: host, OFFSITE_TEST_ENGINE: name, OFFSITE_TEST_SOCKET: socketPath };
  const words = Object.entries(variables).map(([key, value]) => `${key}='${value}'`);
  console.log(`export ${words.join(' ')}`);
  const alive = setInterval(() => undefined, 2 ** 31 - 1); // nothing else keeps this process running
  await once(signal, 'abort');
  clearInterval(alive);
  return 0;
});
