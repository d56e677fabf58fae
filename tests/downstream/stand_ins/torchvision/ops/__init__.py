"""Operations on boxes."""
