import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hostNetwork } from '../../src/gateway/hosts/proxy.ts';
import type { TrialRecord } from '../../src/record/trial-record.ts';
import { agentSandbox, caseSandbox } from '../../src/suite/case-network.ts';
import type { CaseTests } from '../../src/suite/case-tests.ts';
import { meanOf, scriptStep, scriptTests } from './script-tests.ts';
import { sayingHello, scriptedModels } from './scripted-models.ts';
import { openTrialBench, specOf, type TrialBench } from './trial-bench.ts';

const models = scriptedModels({ one: sayingHello });
const server = createServer((request, response) => response.end(`hello from ${request.headers.host}`));
let bench: TrialBench;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  // Every name has one public address, and connections to it reach a server of this test.
  const network = {
    lookup: async () => ['93.184.216.34'],
    connect: (_to: unknown, signal: AbortSignal) =>
      hostNetwork.connect({ address: '127.0.0.1', port }, signal),
  };
  bench = await openTrialBench({ models, network });
});
afterAll(async () => {
  await bench[Symbol.asyncDispose]();
  server.close();
});

const asking = 'ask() { curl -s -o /dev/null -w "%{http_code} " --max-time 30 "$@"; }';
const both = `${asking}; ask http://a.example; ask http://b.example`;
const sandbox = specOf('').sandbox;
const wide = { ...sandbox, network: 'allowlist' as const, hosts: ['*.example'] };
const asks = (...hosts: string[]) => ({ hosts, at: { file: 'task.toml', line: 1, column: 1, path: '' } });

describe.concurrent('the hosts of an agent', () => {
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
    const named = [asks('a.example'), asks()];
    const list = named.map((network, index) => {
      const { network: mode, hosts } = agentSandbox(wide, network);
      const script = 'cat out; echo 1 > /logs/verifier/reward.txt';
      return scriptStep(`step ${index}`, script, { reach: { network: mode, hosts } });
    });
    const run = `export http_proxy=http://127.0.0.1:19734; (${both}) > out`;
    const result = await bench.trial(run, { sandbox: wide, steps: meanOf(list) });
    const said = result.validations?.map(({ logs }) => logs?.[0]?.value?.text);
    expect(said).toEqual(['200 403 ', '403 403 ']);
  });
});

/** Tests that say what they reached. */
const tests = (script: string, change: Partial<CaseTests> = {}) =>
  scriptTests(`${asking}; ${script}; echo 1 > /logs/verifier/reward.txt`, change);

const saidBy = ({ validations }: TrialRecord) => validations?.[0]?.logs?.[0]?.value?.text;
const modelPath = 'http://127.0.0.1:19734/v1/chat/completions';
const hasModel = { model: 'one', modelConfig: models.one };

describe.concurrent('the hosts of tests', () => {
  test('are open only to the tests, and only while they run', async () => {
    const loop = 'while :; do curl -s -x http://127.0.0.1:19734 http://a.example/stolen; done';
    const run = `${asking}; ask -x http://127.0.0.1:19734 http://a.example > out
      echo "$OPENAI_API_KEY" > key; setsid nohup bash -c '${loop}' > /dev/null 2>&1 & sleep 0.1`;
    const script = `cat out; ${both}; ask --noproxy '' -x http://127.0.0.1:19734 http://a.example
      ask -d '{}' -H "authorization: Bearer $(cat key)" ${modelPath}
      ask -d '{}' -H "authorization: Bearer $(cat key)" -H "proxy-authorization: Basic $(
        printf %s "$http_proxy" | sed 's,http://,,; s,@.*,,' | base64 -w0)" ${modelPath}`;
    const result = await bench.trial(run, {
      ...hasModel,
      sandbox: { ...sandbox, network: 'model' },
      tests: tests(script),
      testsHosts: ['a.example'],
    });
    expect(result.cause).toBeUndefined();
    // By the agent; by the tests to a, b, a without the password; to the model without it, and with it.
    expect(saidBy(result)).toBe('403 200 403 407 407 401 ');
    expect(result.subject).toMatchObject({ network: 'model', testsHosts: ['a.example'] });
    const [toA, toB, ...others] = result.testsConnections ?? [];
    expect([toA?.host, toA?.failure, toB?.host]).toEqual(['a.example', undefined, 'b.example']);
    expect(others).toEqual([]);
    const byAgent = result.models?.connections ?? [];
    expect(byAgent.length).toBeGreaterThan(0);
    for (const { failure } of byAgent) expect(failure).toMatch(/may not reach/);
  });

  test('are those of a fresh sandbox too, and of none without a list', async () => {
    const brought = { kind: 'artifacts' as const, artifacts: [], sealed: [] };
    const fresh = { environment: undefined, brought };
    const given = { tests: tests(both, { fresh }), sandbox: wide };
    const [listed, none] = await Promise.all([
      bench.trial('true', { ...given, testsHosts: ['b.example'] }),
      bench.trial('true', given),
    ]);
    expect([listed.cause, saidBy(listed)]).toEqual([undefined, '403 200 ']);
    expect(listed.testsConnections).toHaveLength(2);
    expect([none.cause, saidBy(none)]).toEqual([undefined, '000 000 ']);
    expect(none).not.toHaveProperty('testsConnections');
  });

  test('are those of a control, so that an agent cannot choose to have no verdict', async () => {
    const script = `test -e broken && exit 0; (${both}) > seen; grep -q '200 403' seen || exit 0`;
    const result = await bench.trial('touch broken', {
      sandbox: wide,
      tests: tests(script),
      testsHosts: ['a.example'],
    });
    expect(result.verdict).toBe('failed');
    expect(result.cause).toMatchObject({ kind: 'agent' });
  });
});
