import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runners } from '../../runners/index.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import type { TasksSource } from '../../src/suite/tasks-source.ts';
import { planTasks as planTasksOf } from '../../src/tasks/plan-tasks.ts';

const examples = fileURLToPath(new URL('../../examples', import.meta.url));

/** Each is an example of one suite, except the many of `hostile`, and the files of other systems. */
const others = ['hostile', 'kubernetes', 'github-action', 'gitlab-ci.yml'];

test.each(readdirSync(examples).filter((name) => !others.includes(name)))(
  'the example %s is a good suite',
  (name) => {
    const suiteFolder = join(examples, name);
    const config = loadConfig({ suiteFolder, env: {} });
    const planTasks = (source: TasksSource) =>
      planTasksOf(source, { except: [], images: {}, keys: undefined }).cases;
    const plan = loadSuite(join(suiteFolder, 'suite.yaml'), config, runners, { planTasks });
    expect(plan.cases.length).toBeGreaterThan(0);
  },
);

test('the examples of harnesses have every one', () => {
  const suiteFolder = join(examples, 'harnesses');
  const config = loadConfig({ suiteFolder, env: {} });
  const named = ['suite.yaml', 'more.yaml'].flatMap((file) =>
    loadSuite(join(suiteFolder, file), config, runners).variants.map(({ harness }) => harness),
  );
  expect(named.toSorted()).toEqual(runners.map(({ name }) => name).toSorted());
});
