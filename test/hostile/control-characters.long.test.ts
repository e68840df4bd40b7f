import { expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { OffsiteError } from '../../src/base/offsite-error.ts';
import { readCassette } from '../../src/gateway/replay/cassette-file.ts';
import { scriptedUpstream } from '../../src/gateway/scripted/scripted-upstream.ts';
import { BadFile } from '../../src/suite/file-issues.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { listTasks } from '../../src/tasks/list-tasks.ts';
import { eachTaskSet, set } from '../tasks/each-task-set.ts';

// Each text and each key of each file that a suite or a task has gets each of these characters, in turn. A
// file's content never ends a command for all other tasks, and never as an error that nobody expected.

eachTaskSet();

const parts = { except: [], images: {}, keys: undefined };
const listing = { ...parts, sandbox: { network: 'open', hosts: [] } as never };
const characters = ['\0', '\n'];

const healthcheck = { command: 'true', interval_sec: 1 };
const taskToml = {
  schema_version: '1.4',
  artifacts: ['/app/out', { source: '/app/log', destination: 'log', exclude: ['*.tmp'], service: 'main' }],
  task: { name: 'org/task', description: 'd', keywords: ['one'], authors: [{ name: 'a', email: 'a@b.c' }] },
  metadata: { any: { thing: ['t'] } },
  agent: { timeout_sec: 10, user: 'nobody', network_mode: 'allowlist', allowed_hosts: ['example.org'] },
  verifier: {
    env: { A: 'b', C: `\${C:-c}` },
    user: 'root',
    environment_mode: 'separate',
    environment: { docker_image: 'debian', workdir: '/app', env: { D: 'e' } },
    collect: [{ command: 'true', service: 'main', user: 'root' }],
  },
  solution: { env: { F: 'g' } },
  environment: {
    os: 'linux',
    network_mode: 'no-network',
    env: { H: 'i' },
    workdir: '/app',
    skills_dir: '/skills',
    mcp_servers: [
      { name: 'one', transport: 'stdio', command: 'run', args: ['it'] },
      { name: 'two', transport: 'http', url: 'http://localhost:1/mcp', headers: { X: 'y' } },
    ],
    healthcheck,
  },
};
const steps = {
  steps: [
    { name: 'first', agent: { user: 'nobody' }, verifier: { user: 'root' }, healthcheck, artifacts: ['/a'] },
  ],
};
const service = {
  build: { context: '.', dockerfile: 'Dockerfile', target: 'end', args: { J: 'k' } },
  command: ['sleep', '9'],
  entrypoint: 'sh -c',
  environment: { L: 'm' },
  env_file: ['vars.env'],
  extra_hosts: ['other:10.0.0.1'],
  links: ['db:data'],
  working_dir: '/app',
  user: 'root',
  healthcheck: { test: ['CMD', 'true'], interval: '1s' },
  depends_on: { db: { condition: 'service_started' } },
  volumes: ['./data:/data:ro', 'named:/named', { type: 'bind', source: './data', target: '/again' }],
  configs: [{ source: 'conf', target: '/conf' }],
  secrets: ['hidden'],
  tmpfs: ['/run/it:size=1m'],
  networks: { net: { aliases: ['alias'] } },
  hostname: 'host',
  container_name: 'name',
  mem_limit: '1g',
};
const composed = (main: string) => ({
  services: { [main]: service, db: { image: 'debian', volumes: ['./data:/data'] } },
  volumes: { named: {} },
  configs: { conf: { content: 'c' } },
  secrets: { hidden: { file: './data/secret' } },
});
const row = {
  instance_id: 'row',
  repo: 'org/repo',
  base_commit: 'a'.repeat(40),
  problem_statement: 'Mend it.',
  patch: 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n',
  test_patch: 'diff --git a/t b/t\n--- a/t\n+++ b/t\n@@ -1 +1 @@\n-a\n+b\n',
  FAIL_TO_PASS: ['t::one'],
  PASS_TO_PASS: '["t::two"]',
  version: '1',
  created_at: 'now',
};
const suite = {
  suite: { id: 's', name: 'S', prompt: 'Do {{it}}.' },
  environment: {
    build: { context: 'env', dockerfile: 'Dockerfile', args: { A: 'b' } },
    workdir: '/w',
    user: 'root',
    env: { A: 'b' },
    files: { '/f': 'files/f' },
    folders: { '/g': 'files' },
    writable: ['/tmp/x'],
    needs: ['gpu'],
    services: { db: { image: 'debian', command: ['x'], env: { A: 'b' }, files: { '/f': 'files/f' } } },
  },
  artifacts: ['out/**'],
  cases: [
    { id: 'a', name: 'A', tags: ['t'], variables: { it: 'work' }, prepare: 'true', verify: 'test -e x' },
    {
      id: 'b',
      variables: { it: { file: 'files/f' } },
      validator: { file: 'files/check.py' },
      protected: ['x'],
    },
    {
      id: 'c',
      variables: { it: 'x' },
      prepare: { file: 'files/prepare.sh' },
      verify: { source: 'true', keep: ['/x'] },
    },
  ],
  variants: [{ model: 'none', harness: 'command', profile: 'p', sandbox: 'small' }],
};
const config = {
  allowOutside: ['.'],
  labels: ['big'],
  advanced: { images: { a: 'b' } },
  dataFolder: 'data',
  engines: [{ name: 'one', host: 'unix:///run/one.sock', labels: ['l'] }],
  profiles: { p: { run: 'true', env: { A: 'b' }, files: { '/x': 'files/f' }, install: 'true' } },
  sandboxes: { small: { image: 'offsite/base', network: 'none', runtime: 'runc' } },
  models: {
    m: { wire: 'openai-chat', baseUrl: 'http://127.0.0.1:1', aliases: ['n'] },
    s: { scripted: 'script.yaml' },
  },
};
const texts = {
  'environment/Dockerfile':
    'FROM debian AS end\nARG J\nADD vars.env /x\nCOPY --from=end /x "/y"\nRUN <<A\ntrue\nA\n',
  'environment/vars.env': 'A=b\nexport C="d"\nE=\'f\'\n',
  'environment/.dockerignore': 'data/no\n!data/yes\n',
  '.harborignore': 'no\n',
  'instruction.md': 'Write a file.\n',
};

test.each<[string, Record<string, { value: unknown } | { text: string }>]>([
  [
    'harbor',
    { 'task.toml': { value: taskToml }, 'environment/docker-compose.yaml': { value: composed('main') } },
  ],
  ['harbor', { 'task.toml': { value: { ...taskToml, ...steps } } }],
  ['harbor', Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, { text }]))],
  ['terminalBench', { 'task.yaml': { value: { instruction: 'Do.', difficulty: 'easy', tags: ['t'] } } }],
  ['terminalBench', { 'docker-compose.yaml': { value: composed('client') } }],
])(
  'a task of %s that has one is listed with what is wrong, beside the others',
  (format, files) => {
    set.harbor('other');
    const write = (changed: Record<string, string>) => {
      const all = Object.fromEntries(
        Object.entries(files).map(([name, file]) => [
          name,
          'text' in file ? file.text : written(name, file.value),
        ]),
      );
      const common = {
        'environment/data/secret': 's',
        'solution/solve.sh': 'true',
        'data/secret': 's',
        'vars.env': 'A=b',
      };
      const step = { 'steps/first/instruction.md': 'First.', 'steps/first/tests/test.sh': 'true' };
      const compose = {
        'environment/vars.env': 'A=b',
        'environment/docker-compose.yaml': 'services: { main: { build: ., env_file: vars.env } }',
      };
      const given = { ...common, ...step, ...(format === 'harbor' && compose), ...all, ...changed };
      if (format === 'harbor') set.harbor('task', given);
      else set.terminalBench('task', given);
    };
    const list = () => {
      const { tasks } = listTasks(set.folder, {}, listing);
      expect(tasks.find(({ id }) => id === 'other')?.state).not.toBe('unreadable');
      return tasks.find(({ id }) => id === 'task');
    };
    write({});
    expect(list()?.issues).toEqual([]);
    for (const [name, file] of Object.entries(files))
      for (const [character, content] of variations(name, file)) {
        write({ [name]: content });
        const task = list();
        if (character === '\0') expect(task, JSON.stringify(content)).toMatchObject({ state: 'unreadable' });
      }
  },
  300_000,
);

test('a row of SWE-bench that has one is listed with what is wrong, beside the others', () => {
  const other = JSON.stringify({ ...row, instance_id: 'other' });
  const setup = { image: 'debian', test: { run: 'pytest', parser: 'pytest' } } as const;
  for (const [character, content] of variations('row.jsonl', { value: row })) {
    const path = set.write('rows.jsonl', `${other}\n${content}\n`);
    const { tasks } = listTasks(path, setup as never, listing);
    expect(tasks[0]?.issues).toEqual([]);
    if (character === '\0') expect(tasks[1], content).toMatchObject({ state: 'unreadable' });
  }
});

test.each<[string, unknown]>([
  [
    'dataset.toml',
    { dataset: { name: 'd', keywords: ['k'] }, tasks: [{ name: 'o/task' }], files: [{ path: 'f' }] },
  ],
  [
    'registry.json',
    [{ name: 'r', tasks: [{ name: 'o/task', path: 'task', git_url: 'u', git_commit_id: 'c' }] }],
  ],
])(
  'what is wrong with %s is told',
  (name, value) => {
    set.harbor('task');
    for (const [character, content] of variations(name, { value })) {
      const path = set.write(name, content);
      const list = () => listTasks(name === 'registry.json' ? path : set.folder, {}, listing);
      if (character === '\0') expect(list, content).toThrow(BadFile);
      else expectBadFile(list);
    }
  },
  120_000,
);

test('what is wrong with a suite and its configuration is told', () => {
  const files = {
    'suite.yaml': { value: suite },
    'offsite.yaml': { value: config },
    'env/Dockerfile': { text: 'FROM debian\nARG A\nCOPY f /f\n' },
    'files/prepare.sh': { text: 'true\n' },
  };
  const write = (changed: Record<string, string>) => {
    const given = { 'env/f': 'f', 'files/f': 'f', 'files/check.py': 'pass\n', 'script.yaml': '', ...changed };
    for (const [name, file] of Object.entries(files))
      set.write(name, 'text' in file ? file.text : written(name, file.value));
    for (const [name, content] of Object.entries(given)) set.write(name, content);
  };
  const load = () =>
    loadSuite(`${set.folder}/suite.yaml`, loadConfig({ suiteFolder: set.folder, env: {} }), [
      { name: 'command', wires: [], continues: false, mcp: [], limits: [], runsScript: true, streams: [] },
    ]);
  write({});
  load();
  for (const [name, file] of Object.entries(files))
    for (const [character, content] of variations(name, file)) {
      write({ [name]: content });
      if (character === '\0') expect(load, `${name}: ${content}`).toThrow(BadFile);
      else expectBadFile(load);
    }
});

const script = {
  fillForms: false,
  turns: [
    {
      when: { turn: 1, user: 'do', system: 'agent', result: 'out' },
      text: 't',
      stop: 'length',
      calls: [{ tool: 'bash', arguments: { command: 'true' } }],
    },
    { text: 'u', repeat: true },
  ],
  otherwise: 'v',
};

test('what is wrong with the script of a model is told', () => {
  const read = () => scriptedUpstream(`${set.folder}/script.yaml`, systemClock);
  set.write('script.yaml', JSON.stringify(script));
  read();
  for (const [, content] of variations('script.yaml', { value: script })) {
    set.write('script.yaml', content);
    expectBadFile(read);
  }
});

test('what is wrong with a cassette is told, with its line', () => {
  const lines = [
    { cassette: 1, of: 'batch', suite: 's' },
    { trial: { case: 'c', variant: 'v', ordinal: 0 } },
    { text: 'said' },
    {
      exchange: {
        number: 1,
        role: 'agent',
        model: 'm',
        wire: 'openai-chat',
        context: [0],
        tools: [],
        options: 0,
        turns: [{ by: 'user', said: 0, media: ['m'], results: [0] }],
        status: 200,
        answer: 0,
      },
    },
  ];
  const read = (...written: string[]) => readCassette(set.write('cassette.jsonl', `${written.join('\n')}\n`));
  const whole = lines.map((line) => JSON.stringify(line));
  expect(read(...whole).trials).toHaveLength(1);
  for (const [at, value] of lines.entries())
    for (const [, content] of variations('line.json', { value }))
      expectBadFile(() => read(...whole.with(at, content)), 'CASSETTE_UNREADABLE');
});

/** Runs what may find a problem in a file, and nothing else. */
function expectBadFile(read: () => unknown, code?: string): void {
  try {
    read();
  } catch (error) {
    if (error instanceof BadFile || (error instanceof OffsiteError && error.code === code)) return;
    throw error;
  }
}

/** The contents of a file with each of the characters at each place, one at a time. */
function* variations(
  name: string,
  file: { value: unknown } | { text: string },
): Generator<[character: string, content: string]> {
  for (const character of characters) {
    if ('value' in file)
      for (const value of changed(file.value, character)) yield [character, written(name, value)];
    else
      for (const { index } of file.text.matchAll(/\b/g))
        yield [character, file.text.slice(0, index) + character + file.text.slice(index)];
  }
}

/** A value with a character in the middle of one of its texts or keys, for each of them. */
function* changed(value: unknown, character: string): Generator<unknown> {
  const put = (text: string) => text.slice(0, text.length / 2) + character + text.slice(text.length / 2);
  if (typeof value === 'string') yield put(value);
  else if (Array.isArray(value))
    for (const [index, one] of value.entries())
      for (const other of changed(one, character)) yield value.with(index, other);
  else if (typeof value === 'object' && value !== null)
    for (const [key, one] of Object.entries(value)) {
      for (const other of changed(one, character)) yield { ...value, [key]: other };
      yield { ...value, [put(key)]: one };
    }
}

/** A value in the format of a file. JSON is YAML, and its texts are those of TOML. */
function written(name: string, value: unknown): string {
  const inline = (one: unknown): string => {
    if (Array.isArray(one)) return `[${one.map(inline).join(', ')}]`;
    if (typeof one !== 'object' || one === null) return JSON.stringify(one).replace('\x7f', '\\u007f');
    const pairs = Object.entries(one).map(([key, each]) => `${inline(key)} = ${inline(each)}`);
    return `{ ${pairs.join(', ')} }`;
  };
  if (!name.endsWith('.toml')) return JSON.stringify(value);
  return Object.entries(value as object)
    .map(([key, one]) => `${inline(key)} = ${inline(one)}\n`)
    .join('');
}
