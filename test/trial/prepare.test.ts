import { describe, expect, test } from 'vitest';
import { freshVerify, profileOf } from '../../src/suite/plan.ts';
import { bench, sharedBench } from './shared-bench.ts';
import { timeouts } from './trial-bench.ts';

const certificate = '-----BEGIN CERTIFICATE-----\nof this host\n-----END CERTIFICATE-----\n';
sharedBench({ extraCertificates: Buffer.from(certificate) });

describe.concurrent('prepare', () => {
  test('has a network and trusts what the host trusts; the harness after it has neither', async () => {
    const { trajectory, verdict } = await bench.trial('cat prepared\nenv; cat /proc/net/dev', {
      prepare: 'env > prepared; cat /proc/net/dev "$NODE_EXTRA_CA_CERTS" >> prepared',
      variables: { animal: 'cat' },
      verify: 'true',
    });
    expect(verdict).toBe('passed');
    const [prepared = '', harness = ''] = trajectory?.map(({ output }) => output ?? '') ?? [];
    expect(prepared).toContain('eth0:');
    expect(prepared).toContain('animal=cat');
    expect(prepared).toContain('of this host');
    for (const name of ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'GIT_SSL_CAINFO', 'PIP_CERT'])
      expect(prepared).toMatch(new RegExp(`^${name}=/`, 'm'));
    expect(harness).not.toContain('eth0:');
    expect(harness).not.toContain('CERT');
  });

  test('and install run once for all trials that share them', async () => {
    const spec = {
      prepare: 'cat /proc/sys/kernel/random/uuid > /workspace/prepared',
      profile: profileOf({
        name: 'installed',
        install: 'cat /proc/sys/kernel/random/uuid /opt/given > /opt/installed',
        run: 'cat /opt/installed prepared',
        files: [{ path: '/opt/given', content: Buffer.from('given\n') }],
      }),
      verify: 'true',
    };
    const results = await Promise.all([bench.trial('', spec), bench.trial('', spec)]);
    const [first, second] = results.map(({ trajectory }) => trajectory?.[0]?.output);
    expect(first).toMatch(/^[-0-9a-f]{36}\ngiven\n[-0-9a-f]{36}\n$/);
    expect(second).toBe(first);
  });

  test('that fails makes the trial void, with what it printed, and nothing else is run', async () => {
    const result = await bench.trial('echo never', {
      prepare: 'echo out; echo oops >&2; exit 3',
      verify: 'true',
    });
    expect(result).toMatchObject({
      verdict: 'void',
      cause: { kind: 'task', phase: 'prepare', message: 'prepare exited with 3', output: 'out\noops\n' },
    });
    expect(result.trajectory).toBeUndefined();
  });

  test('that does not end is stopped, and the trial is void', async () => {
    const result = await bench.trial(
      'echo never',
      { prepare: 'echo waiting; sleep 600', verify: 'true' },
      { timeouts: { ...timeouts, prepare: 600 } },
    );
    expect(result).toMatchObject({
      verdict: 'void',
      cause: { kind: 'task', message: 'prepare was stopped after 0.6 s', output: 'waiting\n' },
    });
  });

  test('may leave a process running, which the harness finds, and verify finds one of its own', async () => {
    const { verdict, trajectory, verifySteps } = await bench.trial("pkill -f 'sleep 60[0]'", {
      prepare: 'setsid sleep 600 > /dev/null 2>&1 &',
      verify: "pgrep -f 'sleep 60[0]'",
    });
    expect(trajectory?.at(-1)).toMatchObject({ exitCode: 0 });
    expect(verifySteps).toMatchObject([{ exitCode: 0 }]);
    expect(verdict).toBe('passed');
  });

  test('has what it left running ended in the harness’s own sandbox when that is graded', async () => {
    const { verdict } = await bench.trial("pgrep -f 'sleep 60[0]'", {
      prepare: 'setsid sleep 600 > /dev/null 2>&1 &',
      verify: "! pgrep -f 'sleep 60[0]'",
      verifyPlace: { ...freshVerify, in: 'same' },
    });
    expect(verdict).toBe('passed');
  });
});

test('an image that the engine does not have makes the trial void, says which, and how to get it', async () => {
  const { verdict, cause } = await bench.trial('true', {}, { image: 'nobody/has:this' });
  expect(verdict).toBe('void');
  expect(cause).toMatchObject({ kind: 'infrastructure', phase: 'sandbox' });
  expect(cause?.message).toContain('no image nobody/has:this');
  expect(cause?.message).toContain('docker pull nobody/has:this');
});
