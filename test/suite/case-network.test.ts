import { describe, expect, test } from 'vitest';
import { agentSandbox, caseSandbox, networkProblems, testsHosts } from '../../src/suite/case-network.ts';
import type { SandboxConfig } from '../../src/suite/sandbox-config.ts';

const at = { file: 'task.toml', line: 3, column: 1, path: 'agent.network_mode' };
const asks = (...hosts: string[]) => ({ hosts, at });

function sandbox(network: SandboxConfig['network'], ...hosts: string[]) {
  return { name: 'local', network, hosts };
}

const wide = sandbox('allowlist', '*.example', 'other.org:8443');

describe('the sandbox of a case', () => {
  test.for([
    ['exactly the list', wide, asks('a.example', 'other.org'), ['allowlist', 'a.example', 'other.org:8443']],
    ['none', wide, asks(), ['model']],
    ['those of the sandbox', wide, undefined, ['allowlist', '*.example', 'other.org:8443']],
    ['the list in an open one', sandbox('open'), asks('a.example'), ['allowlist', 'a.example']],
    ['none in an open one', sandbox('open'), asks(), ['model']],
    ['nothing in a closed one', sandbox('none'), asks(), ['none']],
  ] as const)('has %s', ([, given, network, [mode, ...hosts]]) => {
    const made = caseSandbox(given, { agent: { network } });
    expect([made.network, made.hosts]).toEqual([mode, hosts]);
  });

  test.for([
    ['permits only a part', wide, ['a.example', 'example', 'b.org'], ['example', 'b.org']],
    [
      'names hosts that its network does not use',
      sandbox('model', 'a.example'),
      ['a.example'],
      ['a.example'],
    ],
    ['reaches nothing', sandbox('none'), ['a.example'], ['a.example']],
  ] as const)('is refused where it %s', ([, given, hosts, missing]) => {
    const of = { agent: { network: asks(...hosts) } };
    expect(networkProblems(of, given)).toEqual([{ kind: 'missing', at, hosts: missing }]);
    expect(() => caseSandbox(given, of)).toThrow(`task.toml:3:1: agent.network_mode: the sandbox local`);
  });
});

test('the steps of a case have parts of the hosts of its sandbox', () => {
  const step = (...hosts: string[]) => ({ agent: { network: asks(...hosts) }, tests: {} });
  const list = [step('a.example'), step(), step('b.example')];
  for (const given of [wide, sandbox('open')]) {
    const whole = caseSandbox(given, { steps: { list } });
    expect(whole).toMatchObject({ network: 'allowlist', hosts: ['a.example', 'b.example'] });
    expect(list.map(({ agent }) => agentSandbox(whole, agent.network).hosts)).toEqual([
      ['a.example'],
      [],
      ['b.example'],
    ]);
  }
});

test('an open network cannot be closed for one step, or for tests in the same sandbox', () => {
  const open = sandbox('open');
  const mixed = [{ kind: 'mixed', at, hosts: [] }];
  const list = [
    { agent: { network: asks() }, tests: {} },
    { agent: {}, tests: {} },
  ];
  expect(networkProblems({ steps: { list } }, open)).toEqual(mixed);
  expect(networkProblems({ tests: { network: asks() } }, open)).toEqual(mixed);
  expect(networkProblems({ tests: { network: asks(), fresh: {} } }, open)).toEqual([]);
  expect(networkProblems({ agent: { network: asks() }, tests: {} }, open)).toEqual([]);
});

test('tests reach what they name, and what they do not name only if the user says so', () => {
  expect(testsHosts(wide, asks('a.example'))).toEqual(['a.example']);
  expect(testsHosts(wide, undefined)).toEqual([]);
  const opened = { ...wide, testsNetwork: true };
  expect(testsHosts(opened, undefined)).toEqual(wide.hosts);
  expect(testsHosts(opened, asks())).toEqual([]);
  expect(testsHosts({ ...opened, network: 'model' }, undefined)).toEqual([]);
  expect(networkProblems({ tests: { network: asks('b.org') } }, opened)).toHaveLength(1);
});
