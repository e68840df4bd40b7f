import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadConfig } from '../../src/suite/config-file.ts';
import type { CaseEnvironment, PlacedFile } from '../../src/suite/environment.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import type { PlannedCase } from '../../src/suite/plan.ts';
import type { TasksSource } from '../../src/suite/tasks-source.ts';
import { importTasks } from '../../src/tasks/import/import-tasks.ts';
import { planTasks } from '../../src/tasks/plan-tasks.ts';
import { openTaskSet, type TaskSetFolder } from './task-set.ts';

let set: TaskSetFolder;
let out: string;
beforeEach(() => {
  set = openTaskSet();
  out = join(mkdtempSync(join(tmpdir(), 'offsite-import-')), 'suite');
});
afterEach(() => {
  set[Symbol.dispose]();
  rmSync(join(out, '..'), { recursive: true });
});

const parts = { except: [], images: { debian: 'offsite/base' }, keys: undefined };

function imported(source: Partial<TasksSource> = {}, force = false) {
  return importTasks(
    { path: set.folder, ...source },
    { ...parts, folder: out, force, variants: [{ harness: 'any', model: 'none', sandbox: 'local' }] },
  );
}

function loaded(suite: string): PlannedCase[] {
  const config = loadConfig({ suiteFolder: out, env: {} });
  const any = { name: 'any', wires: [], continues: false, mcp: [], limits: [] as [] };
  return loadSuite(suite, { ...config, images: parts.images }, [any]).cases;
}

/** Without the names of places on this machine. */
function comparable({ request, local }: PlannedCase): unknown {
  const { environment, tests, oracle, agent = {}, artifactsExcept = [], steps, ...rest } = local;
  const { build, image, files, services = [] } = environment;
  const sorted = (entries: readonly PlacedFile[] = []) =>
    entries.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  return {
    request,
    local: {
      ...rest,
      ...{ agent: { user: undefined, ...agent, network: agent.network?.hosts }, artifactsExcept, steps },
      environment: {
        ...environment,
        ...comparableSource({ build, image }),
        files: sorted(files),
        services: services.map((service) => ({
          ...service,
          ...comparableSource(service),
          ...{ files: sorted(service.files), place: '' },
        })),
      },
      tests: tests && {
        ...{ collect: [], fresh: undefined, ...tests },
        ...{ files: sorted(tests.files), network: tests.network?.hosts },
      },
      oracle: oracle && { ...oracle, files: sorted(oracle.files) },
    },
  };
}

function comparableSource({ build, image }: Pick<CaseEnvironment, 'build' | 'image'>) {
  return {
    ...(build && { build: { ...build, name: '', file: '', place: '', context: build.context.hash } }),
    ...(image && { image: { ...image, place: '' } }),
  };
}

const compose = `
services:
  main:
    depends_on: { db: { condition: service_healthy } }
  db:
    image: debian
    command: [serve, "--port", "80"]
    environment: { A: b }
    user: nobody
    working_dir: /srv
    healthcheck: { test: [CMD, "true"], interval: 2s }
    depends_on: [cache]
    volumes: ["./db/config:/etc/db", "./db/start.sh:/start.sh", "data:/data"]
    tmpfs: [/run]
  cache:
    build: ./cache
    healthcheck: { disable: true }
    networks: { default: { aliases: [store] } }
volumes: { data: {} }
`;

const full = `
artifacts = [{ source = "/app/out/", exclude = ["*.o"] }]
[task]
name = "org/greet"
keywords = ["small"]
[agent]
timeout_sec = 30.5
user = "node"
[verifier]
timeout_sec = 20
user = "nobody"
env = { MODE = "hard", KEY = "\${KEY:-none}" }
[[verifier.collect]]
command = "dump > /app/out/dump"
timeout_sec = 3
[solution]
env = { HOW = "well" }
[environment]
network_mode = "no-network"
build_timeout_sec = 120
workdir = "/app"
cpus = 0.5
memory_mb = 100
storage_mb = 200
env = { A = "b" }
healthcheck = { command = "test -e /ready", interval_sec = 1, retries = 5 }
skills_dir = "/skills"
[[environment.mcp_servers]]
name = "notes"
transport = "stdio"
command = "node"
args = ["/notes.js"]
`;

function writeAll(): void {
  set.harbor('shop', {
    'environment/docker-compose.yaml': compose,
    'environment/db/config/deep/a.conf': 'a',
    'environment/db/start.sh': 'true',
    'environment/cache/Dockerfile': 'FROM debian\n',
    'environment/cache/lib': 'x',
  });
  set.harbor('greet', {
    'task.toml': full,
    'instruction.md': 'Keep {{this}} and {{instruction}}.\n\n  indented: "yes"\n# not a comment\ttab \n',
    'environment/.dockerignore': 'ignored\n',
    'environment/ignored': 'x',
    'environment/sub/data': 'data',
    'tests/data/expected': 'yes\n',
    'solution/solve.sh': 'true\n',
  });
  set.link('greet/environment/link', '/etc/passwd');
  set.harbor('image', {
    'task.toml': '[environment]\ndocker_image = "debian"\n',
    'environment/Dockerfile': null,
    'environment/sub/data.txt': 'data',
  });
  set.terminalBench('old', { 'tests/test_it.py': 'def test(): pass\n', 'solution.sh': 'true\n' });
}

test('an imported suite has the same cases as the tasks that it comes from', () => {
  writeAll();
  for (const threshold of [undefined, 0.5, { reward: 0.25 }]) {
    const { suites, imported: ids, leftOut } = imported({ threshold }, true);
    expect(leftOut).toEqual([]);
    expect(ids).toEqual(['greet', 'image', 'old', 'shop']);
    const { cases } = planTasks({ path: set.folder, threshold }, parts);
    expect(loaded(suites[0] ?? '').map(comparable)).toEqual(cases.map(comparable));
  }
});

test('a suite is easy to edit: texts are blocks, and what differs here is a comment', () => {
  writeAll();
  const text = readFileSync(imported().suites[0] ?? '', 'utf8');
  expect(text).toContain('      instruction: |\n        Keep {{this}} and');
  expect(text).toMatch(/# note: .*\n {2}- id: image/);
  expect(text).toContain('context: cases/greet/environment');
  expect(text).toContain('/tests: cases/old/tests');
  expect(lstatSync(join(out, 'cases/greet/environment/link')).isSymbolicLink()).toBe(true);
});

test('nothing is overwritten without --force, and nothing of an earlier import is left with it', () => {
  set.harbor('one', { 'tests/old': 'x' });
  imported();
  writeFileSync(join(out, 'mine.md'), 'mine');
  expect(() => imported()).toThrow(/suite\.yaml exists/);
  rmSync(join(set.folder, 'one/tests/old'));
  imported({}, true);
  expect(existsSync(join(out, 'cases/one/tests/old'))).toBe(false);
  expect(readFileSync(join(out, 'mine.md'), 'utf8')).toBe('mine');
});

test('a folder that is a link is not written to', () => {
  set.harbor('one');
  const elsewhere = join(out, '..', 'elsewhere');
  mkdirSync(elsewhere);
  mkdirSync(out);
  symlinkSync(elsewhere, join(out, 'cases'));
  expect(() => imported({}, true)).toThrow('cases is a link');
});

test('tasks that cannot be carried are left out with their reasons', () => {
  set.harbor('good');
  set.harbor('gpu', { 'task.toml': '[environment]\ngpus = 1\n' });
  const separate = 'artifacts = ["/app"]\n[verifier]\nenvironment_mode = "separate"\n';
  set.harbor('separate', { 'task.toml': separate });
  const { imported: ids, leftOut } = imported();
  expect(ids).toEqual(['good']);
  expect(leftOut).toMatchObject([
    { id: 'gpu', state: 'does not run' },
    {
      id: 'separate',
      reasons: [{ message: 'a case of a suite has no separate verifier; run it with --tasks' }],
    },
  ]);
  rmSync(join(set.folder, 'good'), { recursive: true });
  expect(() => imported({}, true)).toThrow(
    /^none of these tasks can be imported:\ngpu: \S+task\.toml:2:1: .*\nseparate: .* has no separate verifier/,
  );
});

test('more tasks than a suite may have become several suites', () => {
  for (let index = 0; index < 101; index++) set.harbor(`task-${index}`);
  const { suites } = imported();
  expect(suites.map((path) => path.slice(out.length + 1))).toEqual(['suite-1.yaml', 'suite-2.yaml']);
  expect(suites.flatMap(loaded)).toHaveLength(101);
});
