/** Former names of commands. They work for one release, with a line that says the new name. */
export const oldNames: Readonly<Record<string, string>> = {
  start: 'service start',
  abandon: 'data abandon',
  fork: 'trial fork',
  batches: 'data batches',
  artifacts: 'trial artifacts',
  shell: 'trial shell',
  regrade: 'trial regrade',
  tasks: 'tasks list',
  import: 'tasks import',
  enqueue: 'daemon enqueue',
  status: 'daemon status',
  pause: 'daemon pause',
  unpause: 'daemon resume',
  drain: 'daemon drain',
  cancel: 'daemon cancel',
  concurrency: 'daemon concurrency',
  outbox: 'data outbox',
  ledger: 'data',
  'base-image': 'engine base-image',
  clean: 'engine clean',
  images: 'engine images',
  whoami: 'service whoami',
  integrations: 'service integrations',
  cases: 'service cases',
  runs: 'service runs',
  rerun: 'service rerun',
  prompts: 'service prompts',
  keys: 'service keys',
};

/** What may follow `tasks` where it is not the former name of `tasks list`. */
const belowTasks = ['', 'list', 'import', 'help', '--help', '-h'];

/** The new name of the command that a line names by its former one. */
export function newName([name = '', word = '']: readonly string[]): string | undefined {
  if (name === 'tasks' && belowTasks.includes(word)) return undefined;
  return Object.hasOwn(oldNames, name) ? oldNames[name] : undefined;
}
