import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { offsite, trustOfThisMachine } from './offsite.ts';
import { openPlace } from './place.ts';
import { writeHarborTask } from './task-folder.ts';

const here = ['--config', 'project/offsite.yaml'];
const server = readFileSync(new URL('../runners/tool-server.mjs', import.meta.url), 'utf8');

/** A task of two steps, in each of which the agent must call the tool of the task's server. */
const files = {
  'task.toml': `
[agent]
timeout_sec = 300
[environment]
memory_mb = 2048
cpus = 1
workdir = "/app"
skills_dir = "/skills"
[[environment.mcp_servers]]
name = "greeter"
transport = "stdio"
command = "sh"
args = ["-c", "tee -a /asked | node /opt/tool-server.mjs gladly"]
[[steps]]
name = "first"
min_reward = 1.0
[[steps]]
name = "second"
agent.user = "dev"
`,
  'environment/Dockerfile': [
    'FROM ubuntu:24.04',
    'RUN useradd -m dev && touch /asked && chmod 666 /asked',
    'COPY tool-server.mjs /opt/',
    'COPY skills /skills',
    '',
  ].join('\n'),
  'environment/tool-server.mjs': server,
  'environment/skills/bell-ringing/SKILL.md':
    '---\nname: bell-ringing\ndescription: Rings the seventh bell.\n---\nPull the rope.\n',
  'instruction.md': null,
  'tests/test.sh': null,
  'solution/solve.sh': null,
  'solution/answer': null,
  'steps/first/instruction.md': 'Greet Ada.\n',
  'steps/first/tests/test.sh': [
    'find / -xdev -path "*skills/bell-ringing/SKILL.md" -not -path "/skills/*"',
    'grep -q Ada /asked && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt',
  ].join('\n'),
  'steps/second/instruction.md': 'Greet Bob.\n',
  'steps/second/tests/test.sh': [
    'find /home/dev -path "*skills/bell-ringing/SKILL.md"',
    'cat /app/whoami; grep -q Bob /asked && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt',
  ].join('\n'),
  // The second step's user writes there.
  'steps/first/workdir/setup.sh': 'touch whoami; chmod 666 whoami; rm "$0"',
};

const script = JSON.stringify({
  turns: ['Ada', 'Bob'].flatMap((name) => [
    {
      when: { user: `Greet ${name}`, turn: 1 },
      calls: [{ tool: 'mcp__greeter__greet', arguments: { to: name } }],
    },
    { when: { user: `Greet ${name}`, turn: 2 }, run: 'id -un > whoami' },
  ]),
  otherwise: 'Done.',
});

test("harnesses get a task's tool servers and skills in each step, as the step's user", {
  timeout: 900_000,
}, async () => {
  using place = openPlace();
  place.write('script.yaml', script);
  place.suite({
    cases: [],
    config: {
      advanced: { images: { 'ubuntu:24.04': 'offsite/base' } },
      models: { scripted: { scripted: 'script.yaml' } },
    },
  });
  writeHarborTask(place, 'greet', files);
  const harnesses = ['claude-code', 'qwen-code'];
  const variants = harnesses.map((name) => `${name}:scripted`);
  const run = ['run', '--tasks', 'project/tasks', '--variant', ...variants, ...here];
  const { exitCode, stdout, stderr } = await offsite(place, run, { env: await trustOfThisMachine() });
  expect(exitCode, stdout + stderr).toBe(0);
  for (const harness of harnesses) {
    const shown = await offsite(place, ['show', `greet/scripted/${harness}#0`, '--json']);
    const { record } = JSON.parse(shown.stdout);
    expect(record.cause).toBeUndefined();
    expect(record.steps.map(({ rewards }: { rewards: unknown }) => rewards)).toEqual([
      { reward: 1 },
      { reward: 1 },
    ]);
    expect(record.verdict).toBe('passed');
    expect(record.deviations).toBeUndefined();
    const [first, second] = record.validations.map(
      ({ logs }: { logs: { value: { text: string } }[] }) => logs[0]?.value.text,
    );
    const folder = harness === 'qwen-code' ? '.qwen' : '.claude';
    expect(first).toBe(`/root/${folder}/skills/bell-ringing/SKILL.md\n`);
    expect(second).toBe(`/home/dev/${folder}/skills/bell-ringing/SKILL.md\ndev\n`);
  }
});

test('a harness without tool servers is told before anything starts; one without skills in its result', async () => {
  using place = openPlace();
  place.write('script.yaml', script);
  place.suite({
    cases: [],
    run: 'printf "%s\\n" "$OFFSITE_MCP_SERVERS" "$OFFSITE_SKILLS" > /asked',
    config: {
      advanced: { images: { 'ubuntu:24.04': 'offsite/base' } },
      models: { scripted: { scripted: 'script.yaml' } },
    },
  });
  writeHarborTask(place, 'greet', { ...files, 'steps/first/tests/test.sh': 'cat /asked' });
  const run = ['run', '--tasks', 'project/tasks', ...here];
  const refused = await offsite(place, [...run, '--variant', 'pi:scripted']);
  expect(refused.exitCode).toBe(2);
  expect(refused.stderr).toContain('greet: ');
  expect(refused.stderr).toContain('the pi harness does not support tool servers, such as greeter');

  await offsite(place, [...run, '--variant', 'command:none', '--profile', 'worker']);
  const shown = await offsite(place, ['show', 'greet/none/command/worker#0', '--json']);
  const { record } = JSON.parse(shown.stdout);
  expect(record.deviations).toEqual([
    'the command harness has no folder for skills: it was given only their path, /skills',
  ]);
  const [servers, skills] = record.cause.output.trim().split('\n');
  expect(JSON.parse(servers)).toEqual({
    mcpServers: { greeter: { command: 'sh', args: ['-c', expect.stringContaining('tee')], env: {} } },
  });
  expect(skills).toBe('/skills');
});
