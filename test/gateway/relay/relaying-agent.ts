// An agent in a separate process, for lifecycle.test.ts: starts a relay, prints its sidecar's id, and stays
// until it is killed.
import { setInterval } from 'node:timers';
import { relayedSandbox } from './relayed-sandbox.ts';

const relayed = await relayedSandbox();
const [sidecar] = await relayed.sidecars();
console.log(JSON.stringify({ sidecar, instance: relayed.engine.instance }));
setInterval(() => undefined, 1_000_000);
