import { Metrics } from '../../src/agent/daemon/metrics.ts';
import { code, page, plain, table } from './markdown.ts';

/** The page of the daemon's metrics, from the registry that answers with them. */
export function metricsPage(): string {
  const rows = new Metrics().described
    .toSorted((one, other) => one.name.localeCompare(other.name))
    .map(({ name, help, type, labels }) => [code(name), type, labels.map(code).join(', '), plain(help)]);
  return page(
    'Metrics',
    'The daemon answers `/metrics` in the format of Prometheus: see [monitoring ' +
      'it](../daemon.md#watch-it).',
    table(['metric', 'type', 'labels', 'what it measures'], rows),
  );
}
