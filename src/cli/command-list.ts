import { Command } from '@commander-js/extra-typings';
import { keepYoungHeapSmall, settleHeap } from '../base/host-program.ts';
import type { CommandTree } from './command-tree.ts';

/**
 * The commands by their path, in the order of the help. A start loads only the code of its own command,
 * because loading takes most of a short command's time.
 */
const sources: Readonly<Record<string, () => Promise<unknown>>> = {
  quickstart: async () => (await import('./commands/quickstart.ts')).quickstartCommand(),
  init: async () => (await import('./commands/init.ts')).initCommand(),
  case: async () => (await import('./commands/case.ts')).caseCommand(),
  check: async () => (await import('./commands/check.ts')).checkCommand(),
  run: async () => (await import('./commands/run.ts')).runCommand(),
  resume: async () => (await import('./commands/resume.ts')).resumeCommand(),
  show: async () => (await import('./commands/show.ts')).showCommand(),
  view: async () => (await import('./commands/view.ts')).viewCommand(),
  compare: async () => (await import('./commands/compare.ts')).compareCommand(),
  export: async () => (await import('./commands/export.ts')).exportCommand(),
  audit: async () => (await import('./commands/audit.ts')).auditCommand(),
  'import-log': async () => (await import('./commands/import-log.ts')).importLogCommand(),
  'trial artifacts': async () => (await import('./commands/artifacts.ts')).artifactsCommand(),
  'trial shell': async () => (await import('./commands/shell.ts')).shellCommand(),
  'trial regrade': async () => (await import('./commands/regrade.ts')).regradeCommand(),
  'trial fork': async () => (await import('./commands/fork.ts')).forkCommand(),
  'tasks list': async () => (await import('./commands/tasks.ts')).listTasksCommand(),
  'tasks import': async () => (await import('./commands/import.ts')).importCommand(),
  daemon: async () => (await import('./commands/daemon.ts')).daemonCommand(),
  'daemon enqueue': async () => (await import('./commands/enqueue.ts')).enqueueCommand(),
  'daemon status': async () => (await import('./commands/control.ts')).statusCommand(),
  'daemon pause': async () => (await import('./commands/control.ts')).pauseCommand(),
  'daemon resume': async () => (await import('./commands/control.ts')).resumeDaemonCommand(),
  'daemon drain': async () => (await import('./commands/control.ts')).drainCommand(),
  'daemon cancel': async () => (await import('./commands/control.ts')).cancelCommand(),
  'daemon concurrency': async () => (await import('./commands/control.ts')).concurrencyCommand(),
  'daemon install': async () => (await import('./commands/daemon.ts')).installCommand(),
  'daemon uninstall': async () => (await import('./commands/daemon.ts')).uninstallCommand(),
  fleet: async () => (await import('./commands/fleet.ts')).fleetCommand(),
  serve: async () => (await import('./commands/serve.ts')).serveCommand(),
  'service whoami': async () => (await import('./commands/service.ts')).whoamiCommand(),
  'service integrations': async () => (await import('./commands/service.ts')).integrationsCommand(),
  'service cases': async () => (await import('./commands/service.ts')).casesCommand(),
  'service runs': async () => (await import('./commands/runs.ts')).runsCommand(),
  'service start': async () => (await import('./commands/start.ts')).startCommand(),
  'service rerun': async () => (await import('./commands/rerun.ts')).rerunCommand(),
  'service evidence': async () => (await import('./commands/service.ts')).evidenceCommand(),
  'service prompts': async () => (await import('./commands/service.ts')).promptsCommand(),
  'service keys': async () => (await import('./commands/keys.ts')).keysCommand(),
  models: async () => (await import('./commands/models.ts')).modelsCommand(),
  doctor: async () => (await import('./commands/doctor.ts')).doctorCommand(),
  'data batches': async () => (await import('./commands/batches.ts')).batchesCommand(),
  'data abandon': async () => (await import('./commands/abandon.ts')).abandonCommand(),
  'data outbox': async () => (await import('./commands/outbox.ts')).outboxCommand(),
  'data check': async () => (await import('./commands/ledger.ts')).checkLedgerCommand(),
  'data backup': async () => (await import('./commands/ledger.ts')).backUpCommand(),
  'data prune': async () => (await import('./commands/ledger.ts')).pruneCommand(),
  'data workspaces': async () => (await import('./commands/ledger.ts')).workspacesCommand(),
  'engine base-image': async () => (await import('./commands/base-image.ts')).baseImageCommand(),
  'engine images': async () => (await import('./commands/images.ts')).imagesCommand(),
  'engine clean': async () => (await import('./commands/clean.ts')).cleanCommand(),
  completion: async () => (await import('./commands/completion.ts')).completionCommand(),
  complete: async () => (await import('./commands/completion.ts')).completeCommand(commandTrees),
};

/** Words that only have commands below them. */
export const nouns: Readonly<Record<string, string>> = {
  trial: 'trials that have run: their files, a shell in their workspace, another grading, another model',
  tasks: 'tasks in other formats: Harbor, Terminal-Bench, SWE-bench',
  service: 'what the Eval Service knows, and platform batches',
  data: 'the data folder: its batches, results that are not reported yet, backups',
  engine: 'what Offsite keeps on the engine: its base image, snapshots, what killed processes left',
};

/** Commands that no person types. */
export const internal = new Set(['complete']);

/**
 * Commands that run for a long time, and that bytes of sandboxes and models pass through. For all others
 * {@link settleHeap} does not pay: it makes their start a quarter slower.
 */
const lasting = new Set([
  'quickstart',
  'run',
  'trial fork',
  'service start',
  'resume',
  'check',
  'trial regrade',
  'audit',
  'daemon',
  'fleet',
  'serve',
  'view',
]);

/**
 * The commands that a command line needs: the one that it names. If it asks only for help, names none, or one
 * that does not exist, it ends with help or an error, which needs no command's code. The version needs none.
 */
export async function needed(argv: readonly string[]): Promise<Command[]> {
  const [first = '', second = ''] = argv;
  if (first === '--version' || first === '-V') return [];
  const path = [`${first} ${second}`, first].find((one) => Object.hasOwn(sources, one));
  const isHelp = argv.includes('--help') || argv.includes('-h');
  if (path && path !== 'daemon' && !isHelp) return [await loaded(path)];
  const { askedHelp, placeholderCommand } = await import('./command-tree.ts');
  const trees = await commandTrees();
  const tree = trees.find(({ name }) => name === first);
  if (!tree) return trees.map(placeholderCommand);
  if (!path || askedHelp(argv, trees)) return [placeholderCommand(tree)];
  const command = await loaded(path);
  // It has an action of its own, and must know the names of the commands below it.
  if (path === 'daemon') for (const below of tree.commands) command.addCommand(placeholderCommand(below));
  return [command];
}

async function loaded(path: string): Promise<Command> {
  if (lasting.has(path)) keepYoungHeapSmall();
  const command = (await sources[path]?.()) as Command;
  if (lasting.has(path)) settleHeap();
  const [noun = '', below] = path.split(' ');
  return below === undefined ? command : nounCommand(noun).addCommand(command);
}

function nounCommand(name: string): Command {
  return new Command(name).description(nouns[name] ?? '') as Command;
}

/** All commands, without the settings that they inherit from the program. */
export async function commands(): Promise<Command[]> {
  const all = new Map<string, Command>();
  for (const [path, source] of Object.entries(sources)) {
    const command = (await source()) as Command;
    const [noun = '', below] = path.split(' ');
    const above = all.get(noun) ?? (below === undefined ? command : nounCommand(noun));
    if (below !== undefined) above.addCommand(command);
    all.set(noun, above);
  }
  return [...all.values()].filter((command) => !internal.has(command.name()));
}

/** The trees of all commands that people type, in the order of the help. */
export async function commandTrees(): Promise<readonly CommandTree[]> {
  const { bundledTrees } = await import('./bundled-trees.ts');
  if (bundledTrees) return bundledTrees;
  const { treeOf } = await import('./command-tree.ts');
  return (await commands()).map(treeOf);
}
