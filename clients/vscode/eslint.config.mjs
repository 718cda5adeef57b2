import tseslint from 'typescript-eslint';

export default tseslint.config(
    { ignores: ['dist', 'node_modules'] },
    {
        files: ['src/**/*.ts', 'test/**/*.ts'],
        extends: [tseslint.configs.strictTypeChecked],
        languageOptions: {
            parserOptions: { project: './tsconfig.json', tsconfigRootDir: import.meta.dirname },
        },
        rules: {
            '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
            '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
            // A text that was never set, or is empty, means the same to a user.
            '@typescript-eslint/prefer-nullish-coalescing': 'off',
            'max-lines': ['error', 400],
            complexity: ['error', 12],
            eqeqeq: 'error',
        },
    },
    {
        // node:test's functions return promises that nobody waits for.
        files: ['test/**/*.ts'],
        rules: { '@typescript-eslint/no-floating-promises': 'off' },
    },
);
