import { Command } from '@commander-js/extra-typings';
import { enginesOf } from '../../agent/engines/check.ts';
import { countsOf } from '../../api/swept-text.ts';
import type { OwnedObject } from '../../engine/owned-objects.ts';
import type { Swept } from '../../engine/sweep.ts';
import { table } from '../../text/fit.ts';
import type { Content } from '../../text/output.ts';
import { lines, text } from '../../text/printable.ts';
import { CommandContext } from '../context.ts';
import { exitCodes } from '../exit-codes.ts';

export function cleanCommand() {
  return new Command('clean')
    .description(
      'remove what Offsite processes that were killed have left on the engine, or on each of several: containers, ' +
        'networks, volumes, images without a name; it never removes what a running process owns',
    )
    .option('--dry-run', 'only list what would be removed')
    .option('--json', 'print one JSON document on stdout')
    .option('--config <file>', 'the configuration')
    .action(async ({ dryRun = false, json, config }) => {
      await using context = CommandContext.open({ config });
      const { out } = context;
      const { signal } = context.interruption();
      context.note('looking for what dead agents have left ...');
      const { away, ...engines } = await context.engines.all(signal);
      const swept: (Swept & { engine?: string | undefined })[] = [];
      for (const engine of enginesOf(engines))
        swept.push({ engine: engine.name, ...(await engine.sweep(signal, { dryRun })) });
      const several = { engines: swept, away: away.map(({ name }) => name) };
      if (json) out.json({ dryRun, ...(context.config.engines === undefined ? swept[0] : several) });
      for (const { engine, ...one } of json ? [] : swept) {
        if (engine !== undefined) out.print(text`${engine}:`);
        out.print(sweepReport(one, dryRun));
      }
      for (const { name, error } of away) context.err.print(text`${name}: ${lines(error.message)}`);
      const isStuck = swept.some(({ stuck }) => stuck.length > 0);
      if (isStuck || away.length > 0) process.exitCode = exitCodes.infrastructure;
    });
}

function sweepReport({ removed, left, stuck, instances }: Swept, dryRun: boolean): Content {
  if (removed.length + left.length + stuck.length === 0)
    return 'Offsite processes that were killed have left nothing on the engine';
  const rows = [
    ...removed.map((object) => row(object, dryRun ? 'would be removed' : 'removed')),
    ...left.map((object) => row(object, 'kept: something else uses it')),
    ...stuck.map((object) => row(object, 'stuck: the engine did not answer; restart it')),
  ];
  const titles = ['', 'name or id', 'what it is', 'process', 'made (UTC)', ''];
  const counts = countsOf(removed) || 'nothing';
  const processes = instances.length === 1 ? 'process that was' : 'processes that were';
  const verb = dryRun ? 'would be removed' : 'removed';
  return text`${table(titles, rows)}\n\n${counts} ${verb}, of ${instances.length} ${processes} killed`;
}

function row(object: OwnedObject, fate: string): string[] {
  const { kind, id, name, instance, createdAt } = object;
  const made = new Date(createdAt).toISOString().slice(0, 16).replace('T', ' ');
  return [kind, name || id.replace('sha256:', '').slice(0, 12), whatItIs(object), instance, made, fate];
}

function whatItIs({ kind, labels }: OwnedObject): string {
  if (kind === 'image') return 'snapshot that was replaced';
  if (labels['offsite.role'] === 'marker') return 'sign of life';
  const { 'offsite.run': run, 'offsite.ordinal': ordinal } = labels;
  return run === undefined ? '' : `trial ${ordinal} of run ${run}`;
}
