/** What `offsite case add` writes where a person has to write. A prompt that contains it is never sent. */
export const promptPlaceholder = 'TODO(offsite): say what the agent shall do';

export function isUnwritten(value: unknown): boolean {
  return typeof value === 'string' && value.includes('TODO(offsite)');
}
