import { randomUUID } from 'node:crypto';
import type { Records } from './records.ts';

/**
 * The name by which services know the agents of this data folder, made when it is first asked for. The
 * processes of a data folder share it: its locks keep them from running the same trial.
 */
export function agentIdOf(records: Records): string {
  return knownIn(records) ?? records.transaction(() => knownIn(records) ?? addedTo(records));
}

function knownIn(records: Records): string | undefined {
  const row = records.get('SELECT id FROM agent');
  return row && String(row.id);
}

function addedTo(records: Records): string {
  const id = `agent-${randomUUID()}`;
  records.run('INSERT INTO agent (id) VALUES (?)', id);
  return id;
}
