import { Command } from '@commander-js/extra-typings';
import type { Engine } from '../../engine/engine.ts';
import { type EvictionRule, evictable, mostSnapshots } from '../../engine/snapshot/eviction.ts';
import type { KeptSnapshot } from '../../engine/snapshot/kept-snapshots.ts';
import type { Config } from '../../suite/config-file.ts';
import { table } from '../../text/fit.ts';
import { type Printable, text } from '../../text/printable.ts';
import { plural, size } from '../../text/quantities.ts';
import { CommandContext } from '../context.ts';
import { age, byteSize } from '../options.ts';

export function imagesCommand() {
  const images = new Command('images').description(
    'the images that Offsite keeps on the engine: its base image, and snapshots of prepared environments',
  );
  for (const command of [listCommand(), pruneCommand()]) images.addCommand(command);
  return images;
}

function listCommand() {
  return new Command('list')
    .description('list the images, least recently used first')
    .option('--json', 'print one JSON document on stdout')
    .option('--config <file>', 'the configuration')
    .action((options) =>
      withEngine(options, async (engine, { out }, signal) => {
        const base = await engine.findImage('offsite/base', signal);
        const snapshots = byUse(await engine.keptSnapshots(signal));
        if (options.json) {
          const names = base && { id: base.id, names: base.names, bytes: base.bytes };
          return out.json({ base: names ?? null, snapshots });
        }
        const baseRow = base && [shortId(base.id), 'base image', size(base.bytes), '', '', ''];
        const rows = [...(baseRow ? [baseRow] : []), ...snapshots.map(row)];
        out.print(rows.length === 0 ? 'the engine has no image of Offsite' : tableOf(rows));
        const bytes = snapshots.reduce((sum, snapshot) => sum + snapshot.bytes, 0);
        out.print(
          text`\n${plural(snapshots.length, 'snapshot')}, ${size(bytes)} in addition to their base images`,
        );
      }),
    );
}

function pruneCommand() {
  return new Command('prune')
    .description(
      'remove snapshots that no container uses, least recently used first; ' +
        'a trial that needs a removed snapshot makes it again',
    )
    .option('--older-than <time>', 'remove snapshots not used for this time, such as 12h or 7d', age)
    .option('--all', 'remove all snapshots')
    .option(
      '--budget <size>',
      'remove snapshots until the others take no more than this (default: from the configuration)',
      byteSize,
    )
    .option('--dry-run', 'only count what would be removed')
    .option('--json', 'print one JSON document on stdout')
    .option('--config <file>', 'the configuration')
    .action((options) =>
      withEngine(options, async (engine, { config, clock, out }, signal) => {
        const rule = ruleOf(options, config);
        const chosen = evictable(await engine.keptSnapshots(signal), rule, clock.now());
        const removed = options.dryRun ? chosen : await engine.removeSnapshots(chosen, signal);
        const freed = removed.reduce((sum, snapshot) => sum + snapshot.bytes, 0);
        if (options.json) return out.json({ dryRun: options.dryRun === true, bytes: freed, removed });
        if (removed.length > 0) out.print(text`${tableOf(removed.map(row))}\n`);
        const verb = options.dryRun ? 'would be removed' : 'removed';
        out.print(`${plural(removed.length, 'snapshot')} ${verb}, ${size(freed)}`);
      }),
    );
}

function ruleOf(
  { all, olderThan, budget }: { all?: true; olderThan?: number; budget?: number },
  config: Config,
): EvictionRule {
  if (all) return {};
  if (olderThan !== undefined) return { unusedForMs: olderThan, budgetBytes: budget };
  return { budgetBytes: budget ?? config.snapshots.budget, most: mostSnapshots };
}

async function withEngine(
  options: { config?: string | undefined },
  work: (engine: Engine, context: CommandContext, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  await using context = CommandContext.open(options);
  const { signal } = context.interruption();
  await work(await context.engines.first(signal), context, signal);
}

const byUse = (snapshots: readonly KeptSnapshot[]) => [...snapshots].sort((a, b) => a.usedAt - b.usedAt);

function tableOf(rows: string[][]): Printable {
  return table(['image', 'what it is', { right: 'size' }, 'made (UTC)', 'last used', ''], rows);
}

function row({ id, name, description, bytes, createdAt, usedAt, inUse }: KeptSnapshot): string[] {
  const what = description || name;
  return [shortId(id), what, size(bytes), date(createdAt), date(usedAt), inUse ? 'in use' : ''];
}

const shortId = (id: string) => id.replace('sha256:', '').slice(0, 12);

const date = (milliseconds: number) => new Date(milliseconds).toISOString().slice(0, 16).replace('T', ' ');
