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
import { parse } from 'yaml';
import type { CaseAgent, CaseTests } from '../../src/suite/case-tests.ts';
import type { CaseEnvironment, PlacedFile } from '../../src/suite/environment.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import type { PlannedCase } from '../../src/suite/plan.ts';
import type { TasksSource } from '../../src/suite/tasks-source.ts';
import { importTasks } from '../../src/tasks/import/import-tasks.ts';
import { planTasks } from '../../src/tasks/plan-tasks.ts';
import { anyHarness } from '../suite/any-harness.ts';
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
  return loadSuite(suite, { ...config, images: parts.images }, [anyHarness]).cases;
}

/** Without the names of places on this machine. */
function comparable({ request, local }: PlannedCase): unknown {
  const { environment, tests, oracle, agent = {}, artifactsExcept = [], steps, answers: _, ...rest } = local;
  return {
    request,
    local: {
      ...rest,
      agent: comparableAgent(agent),
      artifactsExcept,
      environment: comparableEnvironment(environment),
      tests: tests && comparableTests(tests),
      oracle: oracle && { ...oracle, files: sorted(oracle.files) },
      steps: steps && {
        ...steps,
        list: steps.list.map(({ files, tests, oracle, agent, artifactsExcept = [], ...step }) => ({
          setup: undefined,
          healthcheck: undefined,
          timeoutMs: undefined,
          ...step,
          artifactsExcept,
          files: sorted(files),
          tests: comparableTests(tests),
          oracle: oracle && { ...oracle, files: sorted(oracle.files) },
          agent: comparableAgent(agent),
        })),
      },
    },
  };
}

function sorted(entries: readonly PlacedFile[] = []) {
  return entries.toSorted((one, other) => (one.path < other.path ? -1 : 1));
}

function comparableAgent(agent: CaseAgent) {
  return { user: undefined, ...agent, network: agent.network?.hosts };
}

function comparableTests({ fresh, ...tests }: CaseTests) {
  const { environment } = fresh ?? {};
  return {
    collect: [],
    ...tests,
    files: sorted(tests.files),
    network: tests.network?.hosts,
    fresh: fresh && { ...fresh, environment: environment && comparableEnvironment(environment) },
  };
}

function comparableEnvironment(environment: CaseEnvironment) {
  const { build, image, files, services = [], timeouts = {} } = environment;
  return {
    ...environment,
    timeouts,
    ...comparableSource({ build, image }),
    files: sorted(files),
    services: services.map((service) => ({
      ...service,
      ...comparableSource(service),
      files: sorted(service.files),
      place: '',
    })),
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
    volumes: ["./db/config:/srv/config", "./db/start.sh:/srv/start.sh"]
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

const stepped = `
multi_step_reward_strategy = "final"
artifacts = ["/app/all"]
[agent]
user = "node"
[environment]
network_mode = "no-network"
[verifier]
env = { WHOLE = "1" }
[[steps]]
name = "first one"
min_reward = 0.5
artifacts = [{ source = "/app/one", exclude = ["*.o"] }]
[steps.agent]
timeout_sec = 20
network_mode = "public"
[steps.verifier]
timeout_sec = 10
env = { OF = "one" }
[steps.healthcheck]
command = "test -e ready"
[[steps]]
name = "second"
min_reward = { reward = 0.25, other = 1 }
[steps.agent]
user = "root"
[steps.verifier]
environment_mode = "separate"
[[steps.verifier.collect]]
command = "true"
[[steps]]
name = "third"
[steps.verifier]
environment_mode = "separate"
environment = { docker_image = "debian", network_mode = "no-network" }
`;

function writeAll(): void {
  set.harbor('stepped', {
    'task.toml': stepped,
    'instruction.md': null,
    'solution/solve.sh': 'true',
    ...Object.fromEntries(
      ['first one', 'second', 'third'].flatMap((name) => [
        [`steps/${name}/instruction.md`, `Do {{the}} ${name}.\n`],
        [`steps/${name}/tests/own`, name],
      ]),
    ),
    'steps/second/workdir/setup.sh': 'touch ready',
    'steps/second/workdir/deep/file': 'x',
    'steps/second/solution/solve.sh': 'true second',
  });
  set.harbor('separate', {
    'task.toml':
      'artifacts = ["/app/", { source = "/var/out", exclude = ["*.o"] }]\n' +
      '[verifier]\nenvironment_mode = "separate"\n[environment]\nnetwork_mode = "no-network"\n',
  });
  set.harbor('own', {
    'task.toml':
      'artifacts = ["/app"]\n[verifier]\nenvironment_mode = "separate"\n[environment]\nnetwork_mode = "no-network"\n',
    'tests/Dockerfile': 'FROM debian\nCOPY test.sh /tests/\n',
    'tests/docker-compose.yaml': 'services:\n  main: { build: . }\n  db: { image: debian }\n',
  });
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
  mkdirSync(join(set.folder, 'stepped/steps/first one/workdir'));
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
    expect(ids).toEqual(['greet', 'image', 'old', 'own', 'separate', 'shop', 'stepped']);
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

test('the keys of a case have an order for people', () => {
  writeAll();
  const { cases } = parse(readFileSync(imported().suites[0] ?? '', 'utf8'));
  const keysOf = (id: string) => {
    const entry = cases.find((each: { id: string }) => each.id === id);
    return [entry, entry.environment].map((each) => Object.keys(each).join(' '));
  };
  expect(keysOf('greet')).toEqual([
    'id name tags variables environment tests solution agent artifacts artifactsExcept',
    'build workdir env resources startUp healthcheck timeouts writable',
  ]);
  expect(keysOf('image')[1]).toBe('image startUp timeouts folders writable');
  expect(keysOf('shop')[1]).toBe('build nameForServices startUp timeouts files folders writable services');
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

const row = {
  instance_id: 'org__repo-1',
  repo: 'org/repo',
  base_commit: 'abc',
  problem_statement: 'It fails: {{this}}.\r\n\ttab',
  patch: 'diff a\r\n',
  test_patch: 'diff --git a/t.py b/t.py\n--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\r\n+b\r\n',
  FAIL_TO_PASS: '["t.py::a[\\n- x: #1]", "yes", "t.py::b"]',
  PASS_TO_PASS: Array.from({ length: 300 }, (_, index) => `t.py::test_${index}[\u202e]`),
};

test('rows of SWE-bench become cases with named tests, and the image or the build that the user names', () => {
  const rows = [row, { ...row, instance_id: 'two', patch: undefined, test_patch: '', PASS_TO_PASS: [] }];
  const path = set.write('rows.jsonl', rows.map((each) => `${JSON.stringify(each)}\n`).join(''));
  const context = join(out, '../context');
  mkdirSync(context);
  writeFileSync(join(context, 'Dockerfile'), 'FROM debian\nARG AT\n');
  const sources: Partial<TasksSource>[] = [
    { image: 'my/swe-{docker_id}' },
    { build: { context, dockerfile: 'Dockerfile', args: { AT: '{base_commit}' } } },
    {
      image: 'debian',
      test: { parser: 'junit', command: 'pytest --junitxml={report} {files}', restored: [] },
    },
  ];
  for (const source of sources) {
    const { suites, imported: ids } = imported({ path, ...source }, true);
    expect(ids).toEqual(['org__repo-1', 'two']);
    const { cases } = planTasks({ path, ...source }, parts);
    expect(loaded(suites[0] ?? '').map(comparable)).toEqual(cases.map(comparable));
  }
  // Once for all rows.
  expect(existsSync(join(out, 'build/Dockerfile'))).toBe(true);
  expect(existsSync(join(out, 'cases/two/environment'))).toBe(false);
  const text = readFileSync(join(out, 'suite.yaml'), 'utf8');
  expect(text).toContain('passToPass:\n          file: cases/org__repo-1/pass-to-pass.json');
  expect(text).toContain('- t.py::b');
});

test('rows without an image are left out with the reason', () => {
  const path = set.write('rows.jsonl', JSON.stringify(row));
  expect(() => imported({ path })).toThrow(/org__repo-1: \S+rows\.jsonl:1:1: .*name an image or a build/);
});

test('tasks that cannot run are left out with their reasons', () => {
  set.harbor('good');
  set.harbor('gpu', { 'task.toml': '[environment]\ngpus = 1\n' });
  const { imported: ids, leftOut } = imported();
  expect(ids).toEqual(['good']);
  expect(leftOut).toMatchObject([{ id: 'gpu', state: 'does not run' }]);
  rmSync(join(set.folder, 'good'), { recursive: true });
  expect(() => imported({}, true)).toThrow(
    /^none of these tasks can be imported:\ngpu: \S+task\.toml:2:1: .*$/,
  );
});

test('more tasks than a suite may have become several suites', () => {
  for (let index = 0; index < 101; index++) set.harbor(`task-${index}`);
  const { suites } = imported();
  expect(suites.map((path) => path.slice(out.length + 1))).toEqual(['suite-1.yaml', 'suite-2.yaml']);
  expect(suites.flatMap(loaded)).toHaveLength(101);
});
