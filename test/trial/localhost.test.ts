import { expect, test } from 'vitest';
import { someOf } from '../short-tests.ts';
import { bench, sharedBench } from './shared-bench.ts';
import { validator } from './trial-bench.ts';

sharedBench();

/** A server that listens by the name, and a client that finds it by the name. */
const server =
  'require("node:http").createServer((_, answer) => answer.end("reached")).listen(8080, "localhost")';
const client = 'until curl -sS http://localhost:8080 2> /dev/null; do sleep 0.1; done';
const serve = `{ node -e '${server}' & ${client}; kill $!; }`;

const modes = ['none', 'allowlist', 'open'] as const;
const users: [string, object][] = [
  ['root', {}],
  ['another user', { security: 'strict', user: '1000' }],
];
test.each(someOf(modes.flatMap((network) => users.map(([name, user]) => ({ network, name, user })))))(
  'with the network "$network", harness, verify and validator of $name reach a server by the name localhost',
  async ({ network, user }) => {
    const result = await bench.trial(
      serve,
      {
        verify: serve,
        validator: validator(`#!/bin/bash\n${serve}`),
      },
      { network, hosts: ['allowed.example:443'], ...user },
    );
    expect(result).toMatchObject({
      verdict: 'passed',
      trajectory: expect.arrayContaining([expect.objectContaining({ exitCode: 0, output: 'reached' })]),
      validations: [{ output: { text: 'reached' } }],
    });
  },
);
