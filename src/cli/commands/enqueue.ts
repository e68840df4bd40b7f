import { Command } from '@commander-js/extra-typings';
import { writeTicket } from '../../agent/daemon/ticket.ts';
import { sourcesOf, suiteOptions } from '../../api/plan-suite.ts';
import { ciRun } from '../../api/types.ts';
import { loadSuite } from '../../suite/load-suite.ts';
import { CommandContext } from '../context.ts';
import { daemonListens, daemonMode } from '../daemon/ask-daemon.ts';
import { withAllowOutside, withConfigAndData } from '../options.ts';

export function enqueueCommand() {
  return withAllowOutside(withConfigAndData(new Command('enqueue')))
    .description("check a suite and queue it for the data folder's daemon, which runs it as soon as it can")
    .argument('<file>', 'the suite file (YAML)')
    .action(async (file, options) => {
      await using context = CommandContext.open(options, { suite: file });
      const { config, dataFolder, env, runners, out } = context;
      using progress = await context.progress();
      const { signal } = context.interruption();
      const sources = await sourcesOf(file, options, context, { progress, signal });
      const plan = loadSuite(file, config, runners, { ...suiteOptions(options, context), sources });
      const ticket = await writeTicket(dataFolder, { ...plan, trigger: ciRun(env) });
      // A wrong name of the data folder would otherwise look like success.
      const next = (await daemonListens(dataFolder))
        ? await nextStep(dataFolder)
        : `no daemon runs in ${dataFolder} yet: start one there with \`offsite daemon\``;
      out.print(`queued as ${ticket}; ${next}`);
    });
}

/** What happens to the suite while a daemon runs: one that ends takes up nothing more. */
async function nextStep(dataFolder: string): Promise<string> {
  const mode = await daemonMode(dataFolder);
  if (mode === 'paused') return 'the daemon is paused: `offsite daemon resume` lets it start the trials';
  if (mode === 'working') return "`offsite daemon status` shows the daemon's progress";
  return `the daemon is ${mode} and takes up nothing more: the next one runs the suite`;
}
