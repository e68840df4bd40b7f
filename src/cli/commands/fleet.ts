import { Command, type OptionValues } from '@commander-js/extra-typings';
import { withPackage } from '../../base/offsite-error.ts';
import {
  address,
  byteSize,
  rate,
  wholeNumber,
  withAllowOutside,
  withConfigAndData,
  withService,
} from '../options.ts';
import { withTasks } from '../task-options.ts';

/** The modules import packages of Temporal, which are larger than all else together. */
const load = {
  attach: () => withTemporal(() => import('../fleet/run.ts')),
  control: () => withTemporal(() => import('../fleet/control.ts')),
  run: () => withTemporal(() => import('../fleet/run.ts')),
  worker: () => withTemporal(() => import('../fleet/worker.ts')),
};

export function fleetCommand() {
  const fleet = new Command('fleet')
    .description('run batches on many machines at once, with Temporal as the queue: docs/fleet.md')
    .enablePositionalOptions();
  fleet.addCommand(worker());
  fleet.addCommand(run());
  fleet.addCommand(attach());
  fleet.addCommand(rerun());
  fleet.addCommand(poll());
  fleet.addCommand(
    withService(new Command('status'))
      .description('show the workers, the batches in progress, and the poll')
      .action(async (options) => {
        process.exitCode = await (await load.control()).showFleet(options);
      }),
  );
  fleet.addCommand(
    withService(new Command('pull'))
      .description("bring a batch's records and artifacts from the storage into this data folder")
      .argument('<batch>', "the batch's id")
      .action(async (batch, options) => {
        process.exitCode = await (await load.attach()).pull(batch, options);
      }),
  );
  fleet.addCommand(
    withConfigAndData(new Command('drain'))
      .description('end the worker of this data folder when its running trials have ended and are reported')
      .action(async (options) => (await import('../fleet/drain.ts')).drainWorker(options)),
  );
  const controls = {
    pause: 'schedule no more trials of a batch; those that workers hold continue',
    unpause: 'schedule trials of a paused batch again',
    cancel: 'end the running trials of a batch, and schedule no others',
  } as const;
  for (const [name, description] of Object.entries(controls)) {
    fleet.addCommand(
      withConfigAndData(new Command(name))
        .description(description)
        .argument('<batch>', "the batch's id")
        .action(async (batch, options) => {
          await (await load.control()).control(name as keyof typeof controls, batch, options);
        }),
    );
  }
  return fleet;
}

function worker() {
  return withConfigAndData(new Command('worker'))
    .description('run trials of the fleet on this machine until it is stopped')
    .option('-c, --concurrency <n>', 'trials at a time (default: from cores and memory)', wholeNumber)
    .option('--pool <name...>', 'the pools to join (default: fleet.pools)')
    .option(
      '--memory <size>',
      "memory for all its trials together, such as 16g (default: three quarters of the engine's)",
      byteSize,
    )
    .option(
      '--listen <address>',
      'serve /healthz and /readyz there, such as 127.0.0.1:9320 (default: nowhere)',
      address,
    )
    .action(async (options) => {
      process.exitCode = await (await load.worker()).runWorker(options);
    });
}

/** Adds the options that say where and when trials run. */
function withPlacing<Arguments extends unknown[], Options extends OptionValues>(
  command: Command<Arguments, Options>,
  what = 'it',
) {
  return command
    .option('--pool <name>', `the pool whose workers run ${what}`, 'default')
    .option('--priority <n>', 'from 1, the most urgent, to 5', wholeNumber, 3)
    .option('--window <n>', 'the most trials that are scheduled at a time', wholeNumber, 100);
}

/** Adds the options of a command that watches batches. */
function withWatching<Arguments extends unknown[], Options extends OptionValues>(
  command: Command<Arguments, Options>,
) {
  return command
    .option('--fail-under <rate>', 'exit 1 when the pass rate is below this (0 to 1)', rate)
    .option('--junit <file>', 'also write the results as JUnit XML');
}

function run() {
  const placed = withPlacing(
    withTasks(withAllowOutside(withService(new Command('run'))))
      .description('start a suite on the fleet, and watch it; Ctrl-C only stops watching')
      .argument('[file]', 'the suite file (YAML)'),
  )
    .option('--slice <n>', 'the most trials of one workflow; larger batches have several', wholeNumber, 1_000)
    .option('--detach', 'do not watch it');
  return withWatching(placed).action(async (file, options) => {
    process.exitCode = await (await load.run()).runOnFleet(file, options);
  });
}

function poll() {
  const described = withService(new Command('poll')).description(
    'have the workers find runs that others queued, as the daemon does: `daemon` in offsite.yaml',
  );
  return withPlacing(described, 'them')
    .option('--stop', 'end the poll; trials that it started continue')
    .action(async (options) => {
      await (await load.control()).pollQueuedRuns(options);
    });
}

function attach() {
  const described = withService(new Command('attach'))
    .description('watch batches of the fleet, and print their results at their end')
    .argument('<batch...>', 'their ids');
  return withWatching(described).action(async (batches, options) => {
    process.exitCode = await (await load.attach()).attachTo(batches, options);
  });
}

function rerun() {
  const described = withService(new Command('rerun'))
    .description('run the void trials of a batch again, as new runs of the batch, and watch them')
    .argument('<batch>', "the batch's id");
  const placed = withPlacing(described, 'them')
    .option('--slice <n>', 'the most trials of one workflow; larger reruns have several', wholeNumber, 1_000)
    .option('--detach', 'do not watch them');
  return withWatching(placed).action(async (batch, options) => {
    process.exitCode = await (await load.run()).rerunVoid(batch, options);
  });
}

function withTemporal<Module>(load: () => Promise<Module>): Promise<Module> {
  return withPackage(
    {
      named: '@temporalio/',
      code: 'TEMPORAL_MISSING',
      needs: 'the fleet needs the packages of Temporal, which are not installed',
      install:
        '@temporalio/client @temporalio/worker @temporalio/workflow @temporalio/activity @temporalio/common',
    },
    load,
  );
}
