import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostNetwork } from '../../src/gateway/hosts/network.ts';
import { agentSandbox, caseSandbox } from '../../src/suite/case-network.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import type { TrialStep } from '../../src/trial/spec.ts';
import { openTrialBench, specOf, type TrialBench } from './trial-bench.ts';

const folder = mkdtempSync(join(tmpdir(), 'offsite-hosts-'));
const models = { one: ModelConfig.parse({ scripted: join(folder, 'one.yaml') }) };
const server = createServer((request, response) => response.end(`hello from ${request.headers.host}`));
let bench: TrialBench;
beforeAll(async () => {
  writeFileSync(join(folder, 'one.yaml'), 'turns: [{ text: Hello., repeat: true }]\n');
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  // Every name has one public address, and connections to it reach a server of this test.
  const network = {
    lookup: async () => ['93.184.216.34'],
    connect: (_to: unknown, signal: AbortSignal) =>
      hostNetwork.connect({ address: '127.0.0.1', port }, signal),
  };
  bench = await openTrialBench({ models, network });
}, 60_000);
afterAll(async () => {
  await bench[Symbol.asyncDispose]();
  server.close();
  rmSync(folder, { recursive: true });
}, 60_000);

const asking = 'ask() { curl -s -o /dev/null -w "%{http_code} " --max-time 30 "$@"; }';
const both = `${asking}; ask http://a.example; ask http://b.example`;
const sandbox = specOf('').sandbox;
const wide = { ...sandbox, network: 'allowlist' as const, hosts: ['*.example'] };
const asks = (...hosts: string[]) => ({ hosts, at: { file: 'task.toml', line: 1, column: 1, path: '' } });

describe.concurrent('the hosts of an agent', { timeout: 180_000 }, () => {
  test('are exactly those of the case, of all that the sandbox permits', async () => {
    const own = caseSandbox(wide, { agent: { network: asks('a.example') } });
    const result = await bench.trial(`(${both}) > out`, { sandbox: own, verify: 'cat out' });
    expect(result.verifySteps?.[0]?.output).toBe('200 403 ');
    expect(result.subject).toMatchObject({ network: 'allowlist', hosts: ['a.example'] });
    expect(result.models?.connections).toMatchObject([
      { host: 'a.example', port: 80 },
      { host: 'b.example', failure: expect.stringContaining('may not reach') },
    ]);
  });

  test('are none for a case that closes its network; the model stays', async () => {
    const own = caseSandbox(wide, { agent: { network: asks() } });
    const run = `(ask() { curl -s -o /dev/null -w "%{http_code} " --max-time 30 "$@"; }
      ask -x "\${OPENAI_BASE_URL%/v1}" http://a.example
      ask -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' \\
        -d '{"model": "one", "messages": [{"role": "user", "content": "hi"}]}' "$OPENAI_BASE_URL/chat/completions"
      echo "$HTTP_PROXY") > out`;
    const asked = { model: 'one', modelConfig: models.one };
    const result = await bench.trial(run, { ...asked, sandbox: own, verify: 'cat out' });
    expect(result.verifySteps?.[0]?.output).toBe('403 200 \n');
    expect(result.subject?.network).toBe('model');
    expect(result.subject).not.toHaveProperty('hosts');
  });

  test('are those of each step', async () => {
    const named = [asks('a.example'), asks(), asks('b.example')];
    const list = named.map((network, index): TrialStep => {
      const name = `step ${index}`;
      const { network: mode, hosts } = agentSandbox(wide, network);
      return {
        ...{ name, prompt: name, variables: {}, files: [], emptied: [], artifacts: [], agent: {} },
        reach: { network: mode, hosts },
        tests: {
          files: [],
          emptied: ['/logs/verifier'],
          command: ['sh', '-c', 'cat out; echo 1 > /logs/verifier/reward.txt'],
          ...{ env: {}, timeoutMs: 60_000, thresholds: { byName: {} } },
          reading: { kind: 'reward-files', json: '/logs/verifier/no', text: '/logs/verifier/reward.txt' },
        },
      };
    });
    const run = `export http_proxy=http://127.0.0.1:19734; (${both}) > out`;
    const steps = { list, strategy: 'mean' as const, thresholds: { default: 1, byName: {} } };
    const result = await bench.trial(run, { sandbox: wide, steps });
    const said = result.validations?.map(({ logs }) => logs?.[0]?.value?.text);
    expect(said).toEqual(['200 403 ', '403 403 ', '403 200 ']);
  });
});
