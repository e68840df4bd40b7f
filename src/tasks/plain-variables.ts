import type { TaskVariable } from './task.ts';

/** Variables of the machine are not passed on: those without a default are obstacles of the task. */
export function plainVariables(given: Readonly<Record<string, TaskVariable>>): Record<string, string> {
  const plain = (value: TaskVariable) => (typeof value === 'string' ? value : (value.otherwise ?? ''));
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, plain(value)]));
}
