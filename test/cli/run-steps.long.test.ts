import { expect, test } from 'vitest';
import { offsite } from './offsite.ts';
import { openPlace, type Place } from './place.ts';
import { writeHarborTask, writeTaskConfig } from './task-folder.ts';

const here = ['--config', 'project/offsite.yaml'];
const variant = ['--variant', 'command:none', '--profile', 'worker'];

/** A task of two steps, the second of which builds on the first. */
function writeSteps(place: Place, id: string, files: Record<string, string | null> = {}): void {
  writeHarborTask(place, id, {
    'task.toml': `
artifacts = ["/app/greeting"]
[agent]
timeout_sec = 60
[environment]
memory_mb = 256
cpus = 1
workdir = "/app"
[[steps]]
name = "write"
min_reward = 1.0
[[steps]]
name = "extend"
[steps.healthcheck]
command = "grep -q hello greeting"
interval_sec = 1
retries = 1
[steps.verifier.env]
EXPECTED = "hello you"
`,
    'instruction.md': null,
    'tests/test.sh': null,
    'solution/solve.sh': null,
    'solution/answer': null,
    'tests/helper.sh': 'is() { [ "$(cat greeting)" = "$1" ] && echo 1 || echo 0; }\n',
    'steps/write/instruction.md': 'Write hello to greeting.\n',
    'steps/write/tests/test.sh': '. /tests/helper.sh; is hello > /logs/verifier/reward.txt',
    'steps/write/solution/solve.sh': 'cp /solution/hello greeting',
    'steps/write/solution/hello': 'hello',
    'steps/extend/instruction.md': 'Add the word of the file name.\n',
    'steps/extend/workdir/name': 'you',
    'steps/extend/workdir/setup.sh': 'chmod 644 name; rm "$0"',
    'steps/extend/tests/test.sh': '. /tests/helper.sh; is "$EXPECTED" > /logs/verifier/reward.txt',
    'steps/extend/solution/solve.sh':
      'test ! -e /solution/hello && echo "$(cat greeting) $(cat name)" > greeting',
    ...files,
  });
}

test('a task of several steps runs, and its steps are shown', async () => {
  using place = openPlace();
  writeTaskConfig(
    place,
    'case "$OFFSITE_PROMPT" in Write*) echo hello > greeting;; Add*) echo hello me > greeting;; esac',
  );
  writeSteps(place, 'greet');
  const run = ['run', '--tasks', 'project/tasks', ...variant, ...here];
  const { exitCode, stdout, stderr } = await offsite(place, run);
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toMatch(/greet · none\S*\s+0\s+1\s+0/);

  const shown = await offsite(place, ['show', 'greet/none/command/worker#0']);
  expect(shown.stdout).toMatch(/reward {2}0\.5 < 1/);
  expect(shown.stdout).toMatch(/steps\s+2 of 2 ran/);
  expect(shown.stdout).toMatch(/✓ write\s+reward 1, of at least 1/);
  expect(shown.stdout).toMatch(/· extend\s+reward 0, no threshold/);
  expect(shown.stdout).toContain('harness of extend');
  expect(shown.stdout).toContain('steps/write/greeting');
  const json = await offsite(place, ['show', 'greet/none/command/worker#0', '--json']);
  const { record } = JSON.parse(json.stdout);
  expect(record.steps).toMatchObject([
    { name: 'write', verdict: 'passed', rewards: { reward: 1 } },
    { name: 'extend', verdict: 'passed', rewards: { reward: 0 } },
  ]);
  // The folder of the first step's tests is not a change of the agent's.
  expect(record.systemChanges.unexpected.paths).not.toContain('/tests');
});
