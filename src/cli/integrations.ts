import type { Integration } from '../contract/catalog.ts';
import type { Runner } from '../harness/runner.ts';

/** What the embedded service says can be connected: the harnesses this Offsite has, and its sandbox. None takes credentials. */
export function integrationsOf(runners: readonly Runner[]): Integration[] {
  const harnesses = runners.map(({ name, label }) => ({
    id: name,
    label,
    category: 'harness',
    authMethods: [],
  }));
  return [...harnesses, { id: 'local', label: 'Local Docker sandbox', category: 'sandbox', authMethods: [] }];
}
