import type { TaskHealthcheck, TaskService } from '../task.ts';

/** The healthcheck that a compose file has for the main container, whose command bash runs. */
export function healthcheckOfMain({ healthcheck }: TaskService): TaskHealthcheck | undefined {
  if (!healthcheck || healthcheck === 'none') return undefined;
  const { command, ...times } = healthcheck;
  const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`;
  return { ...times, command: typeof command === 'string' ? command : command.map(quoted).join(' ') };
}
