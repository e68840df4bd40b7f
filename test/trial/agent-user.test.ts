import { describe, expect, test } from 'vitest';
import { noEnvironment } from '../../src/suite/environment.ts';
import { meanOf, scriptStep, scriptTests as tests } from './script-tests.ts';
import { bench, sharedBench } from './shared-bench.ts';

sharedBench();

const prepare = 'useradd -m worker && chmod 755 /home/worker && chown worker "$OFFSITE_WORKSPACE"';
const say = 'echo "$(id -un) $HOME $(pwd)" > out; touch /etc/mine 2> /dev/null || echo not root >> out';
const reward = 'echo 1 > /logs/verifier/reward.txt';

describe.concurrent('a case that names the user of its agent', () => {
  test('gets a harness that runs as this user, in its home; the tests run as before', async () => {
    const graded = tests(`cat out; id -un; ${reward}`);
    const result = await bench.trial(say, { prepare, tests: graded, agent: { user: 'worker' } });
    expect(result.cause).toBeUndefined();
    expect(result.validations?.[0]?.logs?.[0]?.value?.text).toBe(
      'worker /home/worker /workspace\nnot root\nroot\n',
    );
    expect(result.verdict).toBe('passed');
  });

  test('may name it by its number, or name one without an entry in /etc/passwd', async () => {
    const graded = tests(`cat out; ${reward}`);
    const change = { prepare: 'chmod 777 "$OFFSITE_WORKSPACE"', tests: graded };
    const run = 'echo "$(id -u) $HOME" > out';
    const [known, unknown] = await Promise.all([
      bench.trial(run, { ...change, agent: { user: '65534' } }),
      bench.trial(run, { ...change, agent: { user: '4321' } }),
    ]);
    expect(known.validations?.[0]?.logs?.[0]?.value?.text).toMatch(/^65534 \/\S+\n$/);
    expect(unknown.validations?.[0]?.logs?.[0]?.value?.text).toMatch(/^4321 \/tmp\n$/);
  });

  test('is void if the sandbox has no such user', async () => {
    const result = await bench.trial(say, { tests: tests(reward), agent: { user: 'nobody-here' } });
    expect(result.verdict).toBe('void');
    expect(result.cause).toMatchObject({
      kind: 'task',
      phase: 'sandbox',
      message: 'the sandbox has no user "nobody-here", as which the agent is to run',
    });
  });

  test('may name another one in each step, whatever the agent made of the users', async () => {
    const step = (name: string, user: string, script: string) =>
      scriptStep(name, script, { agent: { user } });
    const list = [step('first', 'root', reward), step('second', 'worker', `cat who; ${reward}`)];
    const result = await bench.trial(
      'id -u >> who 2> /dev/null || id -u > /tmp/who; chmod 666 who; sed -i s/worker/gone/ /etc/passwd; true',
      {
        prepare: 'useradd -m -u 1234 worker',
        steps: meanOf(list),
      },
    );
    expect(result.verdict).toBe('passed');
    expect(result.validations?.[1]?.logs?.[0]?.value?.text).toBe('0\n1234\n');
  });
});

describe.concurrent('commands that a case runs before anything is collected', () => {
  test('see what the agent left without its processes, as the user that they name', async () => {
    const collect = [
      { command: 'id -un > who; cat /etc/state > state; pgrep -cx sleep > count', timeoutMs: 10_000 },
      { command: 'id -un > /tmp/who2; cat /tmp/who2', timeoutMs: 10_000, user: 'nobody' },
    ];
    const result = await bench.trial('echo kept > /etc/state; setsid sleep 1000 & disown', {
      artifacts: ['state'],
      tests: tests(`cat who state /tmp/who2; ${reward}`, { collect }),
    });
    expect(result.cause).toBeUndefined();
    expect(result.artifacts?.map(({ path }) => path)).toContain('state');
    expect(result.validations?.[0]?.logs?.[0]?.value?.text).toBe('root\nkept\nnobody\n');
  });

  test('are noted if they fail or take too long, and the tests run', async () => {
    const collect = [
      { command: 'echo why; exit 4', timeoutMs: 10_000 },
      { command: 'sleep 600', timeoutMs: 500 },
    ];
    const result = await bench.trial('true', { tests: tests(reward, { collect }) });
    expect(result.verdict).toBe('passed');
    const notes = (result.events ?? []).flatMap((event) => (event.kind === 'note' ? [event.text] : []));
    expect(notes).toEqual([
      'the collect command exited with 4: echo why; exit 4\nwhy\n',
      'the collect command was stopped after 0.5 s: sleep 600\n',
    ]);
  });

  test('end with all that they started before the tests run', async () => {
    const collect = [{ command: 'setsid sleep 1000 > /dev/null 2>&1 & disown', timeoutMs: 10_000 }];
    const graded = tests(`pgrep -fx "sleep 1000" && exit; ${reward}`, { collect });
    const result = await bench.trial('true', { environment: noEnvironment, tests: graded });
    expect(result.verdict).toBe('passed');
  });
});
