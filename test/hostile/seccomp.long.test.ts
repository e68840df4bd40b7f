import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { ContainerSpec } from '../../src/engine/container/container-spec.ts';
import type { Container } from '../../src/engine/container.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { markerRuns, startedContainer } from '../engine/engine-fixture.ts';
import { engine, sharedEngine } from '../engine/shared-engine.ts';
import { relayedSandbox } from '../gateway/relay/relayed-sandbox.ts';
import { openTrialBench, validator } from '../trial/trial-bench.ts';

const probe = readFileSync(new URL('./seccomp-probe.py', import.meta.url));
const work = readFileSync(new URL('./seccomp-work.sh', import.meta.url));

/** What the probe prints. */
interface Found {
  calls: Record<string, string>;
  families: number[];
  'families of pairs': number[];
  errors: Record<string, string>;
  'netlink protocols': number[];
  internet: [type: number, protocol: number][];
  clone: string[];
  personality: string;
  status: Record<string, string>;
  x32?: string[];
  'int 0x80'?: Record<string, string>;
  '32-bit program'?: string;
}

/**
 * The filter of a container, as the engine tells it. Podman does not: there it is what the runtime was given.
 */
async function filterOf(engine: Engine, id: string): Promise<unknown> {
  const docker = dockerOf(engine);
  if (engine.capabilities.product === 'Docker') {
    const { HostConfig } = await docker.getContainer(id).inspect();
    const option: string = HostConfig.SecurityOpt?.find((one: string) => one.startsWith('seccomp=')) ?? '';
    return JSON.parse(option.slice('seccomp='.length) || '{}');
  }
  const { OCIConfigPath } = await new Promise<{ OCIConfigPath: string }>((resolve, reject) => {
    const request = {
      path: `/v1.41/libpod/containers/${id}/json`,
      method: 'GET',
      statusCodes: { 200: true },
    };
    docker.modem.dial(request, (error, found) =>
      error ? reject(error) : resolve(found as { OCIConfigPath: string }),
    );
  });
  return JSON.parse(readFileSync(OCIConfigPath, 'utf8')).linux.seccomp;
}

const [unix, inet, inet6, netlink] = [1, 2, 10, 16];
const [stream, datagram] = [1, 2];
const [usual, echo, tcp, udp] = [0, 1, 6, 17];

/** Fails unless the filter was at work wherever the probe ran. */
function expectSealed(found: Found): void {
  expect(found.status.Seccomp).toBe('2');
  for (const [name, result] of Object.entries(found.calls)) expect(result, name).toMatch(/^(EPERM|ENOSYS)$/);
  expect(found.calls.clone3, 'libraries then use clone').toBe('ENOSYS');
  expect(found.calls.io_uring_setup, 'programs then use epoll').toBe('ENOSYS');
  expect(found.families).toEqual([unix, inet, inet6, netlink]);
  expect(found['families of pairs']).toEqual([unix]);
  expect(found.errors).toEqual({
    vsock: 'EAFNOSUPPORT',
    'vsock above 32 bits': 'EAFNOSUPPORT',
    'unix above 32 bits': 'EAFNOSUPPORT',
    alg: 'EAFNOSUPPORT',
    packet: 'EAFNOSUPPORT',
    audit: 'EPROTONOSUPPORT',
  });
  expect(found['netlink protocols']).toEqual([0]);
  // Sockets for echo requests also need a setting of the network, which Docker leaves out with user namespaces.
  expect(found.internet.filter(([, protocol]) => protocol !== echo)).toEqual([
    [stream, usual],
    [stream, tcp],
    [datagram, usual],
    [datagram, udp],
  ]);
  expect(found.clone).toEqual(['EPERM']);
  expect(found.personality).toBe('EPERM');
  if (found.x32 === undefined) return;
  for (const result of found.x32) expect(result, 'x32').toMatch(/^(SIGSYS|ENOSYS)$/);
  // Where the kernel has that interface at all, its filter ends who uses it.
  for (const [name, result] of Object.entries(found['int 0x80'] ?? {}))
    expect(result, `int 0x80: ${name}`).toMatch(/^(SIGSYS|SIGSEGV)$/);
  expect(found['32-bit program']).toMatch(/^(SIGSYS|SIGSEGV|ENOEXEC)$/);
}

async function probed(container: Container): Promise<Found> {
  const result = await container.exec({ argv: ['python3', '-'], stdin: probe, timeoutMs: 120_000 });
  expect(result, result.stderr.text).toMatchObject({ ended: 'exited', exitCode: 0 });
  return JSON.parse(result.stdout.text);
}

describe('on the engine', () => {
  sharedEngine();

  const kinds: [string, Partial<ContainerSpec>][] = [
    ['the profile "compatible"', {}],
    ['the profile "compatible", as another user', { user: '1000:1000' }],
    ['the profile "strict"', { security: 'strict', user: '1000:1000' }],
    ['an open network', { network: 'open' }],
  ];
  test.each(kinds)(
    'a sandbox of %s has the system calls that programs need, and no others',
    async (_, changes) => {
      await using container = await startedContainer(engine, changes);
      expectSealed(await probed(container));
    },
  );

  test('packages, users, repositories, servers, threads and debuggers work in it', async () => {
    await using container = await startedContainer(engine, { pids: 256 });
    const result = await container.exec({ argv: ['bash', '-s'], stdin: work, timeoutMs: 120_000 });
    expect(result.stdout.text.trim().split('\n').at(-1), result.stderr.text).toBe('done');
  });

  test('neither has one whose processes were killed by a restart', async () => {
    await using container = await startedContainer(engine);
    await dockerOf(engine).getContainer(container.id).restart({ t: 0 });
    expectSealed(await probed(container));
  });

  test('every container of an agent has a filter of ours: sandbox, relay and liveness marker', async () => {
    await using relayed = await relayedSandbox();
    await markerRuns(relayed.engine);
    const filters = { label: [`offsite.instance=${relayed.engine.instance}`] };
    const containers = await dockerOf(relayed.engine).listContainers({ filters });
    expect(containers.length).toBeGreaterThanOrEqual(3);
    for (const { Id, Labels } of containers) {
      expect(await filterOf(relayed.engine, Id), Labels['offsite.role']).toMatchObject({
        defaultAction: 'SCMP_ACT_ERRNO',
        architectures: [expect.any(String)],
      });
    }
  });

  test('a relay has less than its sandbox: TCP, streams over unix sockets and nothing else, and it can neither write files nor trace', async () => {
    await using relayed = await relayedSandbox();
    expectSealed(await probed(relayed.sandbox));
    const [relay = ''] = await relayed.sidecars();
    const script = [
      'import ctypes, errno, json, os, socket',
      'libc = ctypes.CDLL(None, use_errno=True)',
      'def tried(call):',
      '  try: call(); return "allowed"',
      '  except OSError as error: return errno.errorcode[error.errno]',
      'families = [f for f in range(64) for k in (1, 2, 3, 5) if tried(lambda: socket.socket(f, k)) == "allowed"]',
      'traced = libc.ptrace(0, 0, 0, 0); error = errno.errorcode.get(ctypes.get_errno())',
      'print(json.dumps([families, tried(lambda: os.mkdir("/tmp/x")), traced, error]))',
    ];
    const exec = await dockerOf(relayed.engine)
      .getContainer(relay)
      .exec({ Cmd: ['python3', '-c', script.join('\n')], AttachStdout: true, AttachStderr: true, Tty: true });
    const output = await exec.start({ Tty: true });
    let text = '';
    for await (const chunk of output) text += chunk;
    expect(JSON.parse(text)).toEqual([[unix, inet], 'EPERM', -1, 'EPERM']);
  });
});

describe('of a trial', () => {
  const run = (place: string) => `python3 /offsite/probe.py > ${place}`;
  const files = [{ path: '/offsite/probe.py', content: probe }];

  test.each(['none', 'allowlist', 'open'] as const)(
    'every sandbox has the filter: install, prepare, harness, verify and validator, with the network "%s"',
    async (network) => {
      await using bench = await openTrialBench();
      const result = await bench.trial(
        run('harness.json'),
        {
          profile: {
            name: 'probe',
            args: [],
            env: {},
            mcpServers: {},
            files,
            run: run('harness.json'),
            install: run('/install.json'),
          },
          prepare: `${run('prepare.json')}; cp /install.json .`,
          verify: 'python3 /offsite/probe.py',
          validator: validator('#!/bin/sh\npython3 /offsite/probe.py > found && cat found'),
          artifacts: ['*.json'],
        },
        { network, hosts: ['allowed.example:443'] },
      );
      expect(result.verdict, JSON.stringify(result.cause)).toBe('passed');
      const kept = (result.artifacts ?? []).filter(({ path }) => /^\w+\.json$/.test(path));
      expect(kept.map(({ path }) => path).toSorted()).toEqual([
        'harness.json',
        'install.json',
        'prepare.json',
      ]);
      const printed = [result.verifySteps?.[0]?.output, result.validations?.[0]?.output];
      for (const text of printed)
        expectSealed(JSON.parse(typeof text === 'string' ? text : (text?.text ?? '')));
      for (const { sha256 } of kept) {
        const found: Found = JSON.parse(String(bench.blobs.read(sha256)));
        expectSealed(found);
      }
    },
  );
});
