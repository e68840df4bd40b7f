/** Environment variables that give git settings, which the repository's own settings cannot override. */
export function gitSettings(settings: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(settings).flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(Object.keys(settings).length), ...Object.fromEntries(entries) };
}

/** A copied file has another inode, and times rounded to seconds. Git must not take that for a change. */
export const copiedRepository = { 'core.checkStat': 'minimal', 'core.trustctime': 'false' } as const;

/**
 * Git refuses a repository that another user owns, as the workspace is. And when a validator asks git for the
 * status, git must not run the hooks and settings that the agent wrote.
 */
export const validatorGit = gitSettings({
  'safe.directory': '*',
  'core.fsmonitor': 'false',
  'core.hooksPath': '/dev/null',
  ...copiedRepository,
});
