import { expect, test } from 'vitest';
import { listTasks } from '../../src/tasks/list-tasks.ts';
import { eachTaskSet, set } from './each-task-set.ts';

eachTaskSet();

test('a task with hosts that the sandbox does not permit is listed with them and their place', () => {
  const toml = `[environment]
network_mode = "allowlist"
allowed_hosts = ["a.example"]
[verifier]
network_mode = "allowlist"
allowed_hosts = ["a.example", "b.example", "c.example"]
`;
  set.harbor('task', { 'task.toml': toml });
  const listedIn = (...hosts: string[]) => {
    const sandbox = { network: 'allowlist' as const, hosts };
    const [task] = listTasks(set.folder, {}, { except: [], images: {}, keys: undefined, sandbox }).tasks;
    return [task?.state, ...(task?.obstacles ?? []).map(({ line, path, message }) => [line, path, message])];
  };
  expect(listedIn('*.example')).toEqual(['runs']);
  expect(listedIn('a.example')).toEqual([
    'does not run',
    [5, 'verifier.network_mode', expect.stringMatching(/^b\.example, c\.example: .*offsite\.yaml/)],
  ]);
  expect(listedIn().slice(1)).toHaveLength(2);
});
